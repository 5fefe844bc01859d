#include "agent/daemon/services/host_record_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/limits/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/log/log.hpp"
#include "common/machine/files.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"
#include "rendezvous/protocol/control/control_codec.hpp"

namespace cpprun {
namespace {

using control::Exclusion;
using control::HostRecord;

// More than limits::kHostRecords records need.
constexpr size_t kFileBytes = 256 * 1024;
constexpr size_t kNameBytes = 200;  // of the 255 of a file name; the endings need the rest

// Fewer faults than --exclude-after allows now exclude no host. A program that could not be started
// is one fault, which may have been healed since.
void lift_exclusions(control::HostRecords& records, int64_t exclude_after) {
  for (HostRecord& record : records.hosts) {
    const bool is_held = exclude_after > 0 && record.faults() >= exclude_after;
    if (record.exclusion == Exclusion::Policy && !is_held) record.exclusion = Exclusion::None;
  }
}

// "": it is written.
std::string replace(const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string draft = path + "." + std::to_string(::getpid()) + ".draft";
  const UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.is_open()) return std::strerror(errno);
  if (Status ok = write_all(file.get(), text); !ok) return ok.error().text;
  if (::fsync(file.get()) != 0 || ::rename(draft.c_str(), path.c_str()) != 0) {
    return std::strerror(errno);
  }
  return "";
}

}  // namespace

std::vector<std::string> excluded_in(const control::HostRecords& records) {
  std::vector<std::string> hosts;
  for (const HostRecord& record : records.hosts) {
    if (record.exclusion != Exclusion::None) hosts.push_back(record.host);
  }
  return hosts;
}

std::string HostRecordFile::path() const {
  const std::string name = text::file_name(config_.rendezvous.run_id, kNameBytes);
  return config_.state_dir + "/" + name + ".hosts.json";
}

control::HostRecords HostRecordFile::load() {
  if (config_.state_dir.empty()) return {};
  const auto read = [path = path()] { return read_file(path, kFileBytes).value_or(""); };
  const std::string text = io_.result_of(read, limits::kJobRecordTimeout).value_or("");
  if (text.empty()) return {};
  Result<control::HostRecords> records = control::parse_host_records(text);
  if (!records) {
    log::warning("--state-dir: " + path() + " is ignored: " + records.error().text);
    return {};
  }
  lift_exclusions(*records, config_.exclude_after);
  return *records;
}

void HostRecordFile::save(const control::HostRecords& records) {
  if (config_.state_dir.empty()) return;
  const bool is_posted = io_.post([path = path(), text = control::host_records_json(records)] {
    const std::string trouble = replace(path, text);
    if (!trouble.empty()) log::warning("--state-dir: " + path + " is not written: " + trouble);
  });
  if (!is_posted) log::warning("--state-dir: " + path() + " is not written: too much waits");
}

}  // namespace cpprun

#include "agent/daemon/services/state_files.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/limits/agent.hpp"
#include "common/log/log.hpp"
#include "common/machine/files.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr std::array<const char*, StateFiles::kKinds> kNames{"hosts", "goodput", "hang-times"};
// More than limits::kHostRecords records need.
constexpr size_t kFileBytes = 256 * 1024;
constexpr size_t kNameBytes = 200;  // of the 255 of a file name; the endings need the rest

// "": it is written and on the disk.
std::string write_file(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.is_open()) return std::strerror(errno);
  if (Status ok = write_all(file.get(), text); !ok) return ok.error().text;
  return ::fsync(file.get()) == 0 ? "" : std::strerror(errno);
}

// "": it is written.
std::string replace(const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string draft = path + "." + std::to_string(::getpid()) + ".draft";
  std::string why = write_file(draft, text);
  if (why.empty() && ::rename(draft.c_str(), path.c_str()) != 0) why = std::strerror(errno);
  if (!why.empty()) ::unlink(draft.c_str());
  return why;
}

}  // namespace

std::string StateFiles::path(Kind kind) const {
  const std::string name = text::file_name(config_.rendezvous.run_id, kNameBytes);
  return config_.state_dir + "/" + name + "." + kNames[static_cast<size_t>(kind)] + ".json";
}

StateFiles::File StateFiles::read(const std::string& path) {
  std::optional<std::string> text = read_file(path, kFileBytes);
  if (text) return {std::move(*text), ""};
  const int why = errno;
  return {"", why == ENOENT ? "" : std::strerror(why)};
}

void StateFiles::load() {
  if (config_.state_dir.empty()) return;
  std::array<std::string, kKinds> paths;
  for (size_t i = 0; i < kKinds; ++i) paths[i] = path(static_cast<Kind>(i));
  const auto read_all = [paths] {
    std::array<File, kKinds> files;
    for (size_t i = 0; i < kKinds; ++i) files[i] = read(paths[i]);
    return files;
  };
  for (File& file : files_) file.trouble = "the file system does not answer";
  auto found = io_.result_of(read_all, limits::kJobRecordTimeout);
  if (found) files_ = std::move(*found);
  std::string reported;  // the others of a bad folder have the same trouble
  for (size_t i = 0; i < kKinds; ++i) {
    const std::string& trouble = files_[i].trouble;
    if (trouble.empty() || std::exchange(reported, trouble) == trouble) continue;
    log::warning("--state-dir: " + paths[i] + " is neither read nor changed: " + trouble);
  }
}

void StateFiles::ignore(Kind kind, const std::string& why) const {
  log::warning("--state-dir: " + path(kind) + " is ignored: " + why);
}

void StateFiles::save(Kind kind, std::string text) {
  if (config_.state_dir.empty() || !files_[static_cast<size_t>(kind)].trouble.empty()) return;
  const auto warn = [has_warned = has_warned_, path = path(kind)](const std::string& why) {
    if (!has_warned->exchange(true)) {
      log::warning("--state-dir: " + path + " is not written: " + why);
    }
  };
  const bool is_posted = io_.post([warn, path = path(kind), text = std::move(text)] {
    const std::string trouble = replace(path, text);
    if (!trouble.empty()) warn(trouble);
  });
  if (!is_posted) warn("too much waits");
}

void StateFiles::finish() {
  if (!config_.state_dir.empty()) io_.wait(limits::kIoEndTimeout);
}

}  // namespace cpprun

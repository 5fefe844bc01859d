// StateFiles: the files of a job in --state-dir, from which later jobs with the same run id
// continue: <run id>.<kind>.json ('_' instead of slashes). Without --state-dir nothing is read or
// written.
//
// No error in them stops the agent: what can't be read is not changed either, and the first file
// that can't be written is reported once. Thread: the loop's; the I/O thread reads and writes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "agent/core/config.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {

class StateFiles {
 public:
  enum class Kind { Hosts, Goodput, HangTimes };
  static constexpr size_t kKinds = 3;

  // `config` and `io` must outlive this object.
  StateFiles(const AgentConfig& config, IoThread& io) : config_(config), io_(io) {}

  // Reads all. Waits for the file system, at most limits::kJobRecordTimeout.
  void load();
  // What that has found; "": nothing.
  const std::string& text(Kind kind) const { return files_[static_cast<size_t>(kind)].text; }
  // The text is damaged. The next save() replaces it.
  void ignore(Kind kind, const std::string& why) const;
  // Replaces the file, soon.
  void save(Kind kind, std::string text);
  // Waits until all is written, at most limits::kIoEndTimeout.
  void finish();

 private:
  struct File {
    std::string text;
    std::string trouble;  // why it can't be read; "": it can, or does not exist
  };

  static File read(const std::string& path);
  std::string path(Kind kind) const;

  const AgentConfig& config_;
  IoThread& io_;
  std::array<File, kKinds> files_;
  const std::shared_ptr<std::atomic<bool>> has_warned_ =  // shared with the I/O thread's tasks
      std::make_shared<std::atomic<bool>>(false);
};

}  // namespace cpprun

#include "common/log/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/log/async_log_writer.hpp"
#include "common/text.hpp"

namespace cpprun::log {
namespace {

// Python's names, in capital letters.
spdlog::level::level_enum level_of(std::string_view name) {
  if (name == "DEBUG" || name == "NOTSET") return spdlog::level::debug;
  if (name == "INFO") return spdlog::level::info;
  if (name == "ERROR") return spdlog::level::err;
  if (name == "CRITICAL" || name == "FATAL") return spdlog::level::off;
  return spdlog::level::warn;
}

AsyncLogWriter& err() {
  static AsyncLogWriter& kErr =
      *new AsyncLogWriter(STDERR_FILENO);  // its thread may outlive main()
  static const int kAtExit = std::atexit([] { err().finish(std::nullopt); });
  static_cast<void>(kAtExit);
  return kErr;
}

class ErrSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    err().write(std::string_view(line.data(), line.size()));
  }
  void flush_() override {}
};

std::shared_ptr<spdlog::logger> make_logger() {
  auto made = std::make_shared<spdlog::logger>("cpprun", std::make_shared<ErrSink>());
  made->set_pattern("cpprun: %v");
  made->set_level(spdlog::level::warn);
  return made;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> kLogger = make_logger();
  return *kLogger;
}

}  // namespace

void set_level(std::string_view name) {
  std::string upper;
  for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const spdlog::level::level_enum level = level_of(upper);
  logger().set_level(level);
  logger().set_pattern(level <= spdlog::level::info ? "cpprun %H:%M:%S.%e %L: %v" : "cpprun: %v");
}

void open() { err(); }

// Texts may quote workers, peers and names of files.
void debug(std::string_view text) { logger().debug(text::printable(text)); }
void info(std::string_view text) { logger().info(text::printable(text)); }
void warning(std::string_view text) { logger().warn(text::printable(text)); }
void error(std::string_view text) { logger().error(text::printable(text)); }

void plain(std::string_view text) { err().write(text::printable(text)); }

void finish(Duration most) { err().finish(most); }

}  // namespace cpprun::log

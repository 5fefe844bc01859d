#include "common/log/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cctype>
#include <memory>
#include <string>

namespace cpprun::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::Debug:
      return spdlog::level::debug;
    case Level::Info:
      return spdlog::level::info;
    case Level::Warning:
      return spdlog::level::warn;
    case Level::Error:
      return spdlog::level::err;
    case Level::Off:
      return spdlog::level::off;
  }
  return spdlog::level::warn;
}

std::shared_ptr<spdlog::logger> make_logger() {
  auto made =
      std::make_shared<spdlog::logger>("cpprun", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  made->set_pattern("cpprun: %v");
  made->set_level(spdlog::level::warn);
  made->set_error_handler([](const std::string&) {});  // a full or closed stderr must not stop us
  return made;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> kLogger = make_logger();
  return *kLogger;
}

}  // namespace

Level parse_level(std::string_view name) {
  std::string upper;
  for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper == "DEBUG" || upper == "NOTSET") return Level::Debug;
  if (upper == "INFO") return Level::Info;
  if (upper == "ERROR") return Level::Error;
  if (upper == "CRITICAL" || upper == "FATAL") return Level::Off;
  return Level::Warning;
}

void set_level(Level level) {
  logger().set_level(to_spdlog(level));
  logger().set_pattern(level <= Level::Info ? "cpprun %H:%M:%S.%e %L: %v" : "cpprun: %v");
}

bool is_on(Level level) {
  return logger().should_log(to_spdlog(level));
}

void debug(std::string_view text) {
  logger().debug(text);
}
void info(std::string_view text) {
  logger().info(text);
}
void warning(std::string_view text) {
  logger().warn(text);
}
void error(std::string_view text) {
  logger().error(text);
}

void plain(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace cpprun::log

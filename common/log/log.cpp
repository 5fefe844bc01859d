#include "common/log/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/log/async_log_writer.hpp"
#include "common/text.hpp"
#include "common/text_style.hpp"

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

// A terminal's last line, which set_live_line() replaces.
class LiveLine {
 public:
  // Writes a message above the line.
  void write_above(std::string_view message) {
    const std::lock_guard lock(mutex_);
    const bool is_within = std::exchange(is_within_line_, false);
    if (line_.empty()) return err().write((is_within ? "\n" : "") + std::string(message));
    err().write(kClear + std::string(message) + line_);
  }
  void set(std::string_view line) {
    const std::lock_guard lock(mutex_);
    if (line_.empty() && line.empty()) return;
    line_ = line;
    err().write(kClear + line_);
  }
  void set_within_line(bool is_within) {
    const std::lock_guard lock(mutex_);
    is_within_line_ = is_within;
  }

 private:
  inline static const std::string kClear = "\r\033[K";
  std::mutex mutex_;
  std::string line_;
  bool is_within_line_ = false;  // text of others ends there
};

LiveLine& live_line() {
  static LiveLine& kLine = *new LiveLine();  // for messages at the process's exit
  return kLine;
}

class ErrSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    live_line().write_above(std::string_view(line.data(), line.size()));
  }
  void flush_() override {}
};

std::shared_ptr<spdlog::logger> make_logger() {
  auto made = std::make_shared<spdlog::logger>("cpprun", std::make_shared<ErrSink>());
  made->set_pattern("%v");
  made->set_level(spdlog::level::warn);
  return made;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> kLogger = make_logger();
  return *kLogger;
}

bool is_detailed() { return logger().level() <= spdlog::level::info; }

// "word: text"; lines that begin with "hint: " get that word's colour. On a terminal, lines of at
// most `width` columns.
std::string with_word(std::string_view word, TextStyle style, std::string_view text, size_t width) {
  constexpr std::string_view kHint = "hint:";
  if (::isatty(STDERR_FILENO) != 1) width = std::string::npos;
  std::string output;
  for (const std::string& line : text::split(text::printable(text), '\n')) {
    const bool is_first = output.empty();
    const bool is_hint = !is_first && line.starts_with("hint: ");
    if (!is_first && !is_hint) {
      output += "\n" + line;
      continue;
    }
    const std::string_view front = is_first ? word : kHint;
    const std::string_view rest = is_first ? line : std::string_view(line).substr(kHint.size() + 1);
    output += (is_first ? "" : "\n") +
              styled(is_first ? style : TextStyle::Note, front, has_color()) + " " +
              indented(rest, front.size() + 1, width);
  }
  return output;
}

std::atomic<ColorMode> g_color_mode{ColorMode::Auto};

std::string message(std::string_view word, TextStyle style, std::string_view text,
                    size_t width = kConsoleColumns) {
  return is_detailed() ? text::printable(text) : with_word(word, style, text, width);
}

}  // namespace

void set_level(std::string_view name) {
  std::string upper;
  for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const spdlog::level::level_enum level = level_of(upper);
  logger().set_level(level);
  logger().set_pattern(level <= spdlog::level::info ? "cpprun %H:%M:%S.%e %L: %v" : "%v");
}

void set_color(ColorMode mode) { g_color_mode = mode; }
bool has_color() { return wants_color(STDERR_FILENO, g_color_mode); }

void open() { err(); }

// Texts may quote workers, peers and names of files.
void debug(std::string_view text) { logger().debug(text::printable(text)); }
void info(std::string_view text) { logger().info(text::printable(text)); }
void warning(std::string_view text) {
  logger().warn(message("warning:", TextStyle::Warning, text));
}
void error(std::string_view text) { logger().error(message("error:", TextStyle::Error, text)); }
void failure(std::string_view text) {
  live_line().write_above(with_word("error:", TextStyle::Error, text, kConsoleColumns) + "\n");
}
void note(std::string_view text) { logger().warn(message("note:", TextStyle::Note, text)); }
void status(std::string_view text) { logger().warn(message("cpprun:", TextStyle::Faint, text)); }
void command(std::string_view text) {
  logger().warn(message("cpprun:", TextStyle::Faint, text, std::string::npos));
}

void plain(std::string_view text) { live_line().write_above(text::printable(text)); }
void raw(std::string_view text) { live_line().write_above(text); }

bool shows_status() { return logger().should_log(spdlog::level::warn); }
void set_live_line(std::string_view text) { live_line().set(text::printable(text)); }

void set_within_line(bool is_within) { live_line().set_within_line(is_within); }

void finish(Duration most) { err().finish(most); }

}  // namespace cpprun::log

// cpprun's own messages on stderr: "error: text", "warning: text", "note: text", and "cpprun: text"
// for the state of the job; with level and time when LOGLEVEL asks for more. A line of the text
// that begins with "hint: " is a hint. log.cpp is the only file that includes spdlog. Thread-safe.
//
// No call waits for the reader or the file system of stderr (async_log_writer.hpp); only the exit
// of the process does.
#pragma once

#include <string_view>

#include "common/machine/terminal_color.hpp"
#include "common/time.hpp"

namespace cpprun::log {

// `name`: the value of LOGLEVEL, one of Python's names in any case. Unknown or empty means WARNING,
// as in torchrun.
void set_level(std::string_view name);
// Opens stderr for the messages, unless that is done. The first message on a loop would block.
void open();

// Auto until this is called.
void set_color(ColorMode mode);
bool has_color();

void debug(std::string_view text);
void info(std::string_view text);
void warning(std::string_view text);
void error(std::string_view text);
// An error that ends the program: shown at every level, without time.
void failure(std::string_view text);
// As warnings, without an alarm: what the user may want to know, and the state of the job.
void note(std::string_view text);
void status(std::string_view text);
// The same for a line with a command to copy, which stays one line on every terminal.
void command(std::string_view text);

// Writes text that scripts grep for (banner, failure summary) without prefix, at every level.
void plain(std::string_view text);
// The same for text that is printable already, such as text with colours.
void raw(std::string_view text);

// Whether status() writes anything.
bool shows_status();

// The last line of a terminal, which each call replaces; messages appear above it. "": none.
void set_live_line(std::string_view text);

// Whether other text at the same place, such as a worker's progress bar, ends within a line: the
// next message then begins a new one.
void set_within_line(bool is_within);

// Before a process exit that must not wait for ever: discards the text that is unread after `most`.
void finish(Duration most);

}  // namespace cpprun::log

// What the launcher itself says, on stderr: "cpprun: text" for warnings and errors, with level and
// time when LOGLEVEL asks for more. The only translation unit that holds spdlog. Thread-safe.
//
// Nothing here waits for whoever reads stderr (async_log_writer.hpp); the process does, when it
// ends.
#pragma once

#include <string_view>

#include "common/time.hpp"

namespace cpprun::log {

enum class Level { Debug, Info, Warning, Error, Off };

// Level from LOGLEVEL's text (Python's names, any case); unknown or empty means Warning, as
// torchrun.
Level parse_level(std::string_view name);

void set_level(Level level);
bool is_on(Level level);

void debug(std::string_view text);
void info(std::string_view text);
void warning(std::string_view text);
void error(std::string_view text);

// Text that people grep for (banner, failure summary): as it is, without prefix, whatever the
// level.
void plain(std::string_view text);

// At the end, where the process may not wait for ever: what is not read in `most` is given up.
void finish(Duration most);

}  // namespace cpprun::log

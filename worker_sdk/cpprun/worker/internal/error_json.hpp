// The error file's content. Pure; fit for signal handlers.
#pragma once

#include <cstdint>

#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/internal/fixed_text.hpp"

namespace cpprun::worker {

// What of each text is kept. The launcher shows 16 KiB per worker.
inline constexpr size_t kMessageBytes = 16 * 1024;
inline constexpr size_t kStackBytes = 24 * 1024;
// Every byte may need six, and the message stands there twice.
inline constexpr size_t kErrorJsonBytes = 6 * (2 * kMessageBytes + kStackBytes) + 512;

void put_error_json(FixedText& to, const ErrorText& text, uint64_t unix_seconds) noexcept;

}  // namespace cpprun::worker

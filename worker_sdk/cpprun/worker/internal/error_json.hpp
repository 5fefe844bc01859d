// The content of the error file as JSON. Pure; safe in signal handlers.
#pragma once

#include <cstdint>

#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/internal/fixed_text.hpp"

namespace cpprun::worker {

// How much of each text is kept. The launcher shows 16 KiB per worker.
inline constexpr size_t kMessageBytes = 16 * 1024;
inline constexpr size_t kStackBytes = 24 * 1024;
// JSON may need six bytes for one, and the message occurs twice.
inline constexpr size_t kErrorJsonBytes = 6 * (2 * kMessageBytes + kStackBytes) + 512;

inline void put_error_json(FixedText& to, const ErrorText& text, uint64_t unix_seconds) noexcept {
  to.put(R"({"message": {"message": ")").put_json(text.message, kMessageBytes);
  // torchrun shows only this field, so it repeats the message.
  to.put(R"(", "extraInfo": {"py_callstack": ")").put_json(text.message, kMessageBytes);
  if (!text.stack.empty()) to.put("\\n").put_json(text.stack, kStackBytes);
  // Whole seconds, because torchelastic parses them with int().
  to.put(R"(", "timestamp": ")").put_number(unix_seconds).put("\"");
  if (text.is_consequence) to.put(R"(, "consequence_of": "peer")");
  to.put("}}}\n");
}

}  // namespace cpprun::worker

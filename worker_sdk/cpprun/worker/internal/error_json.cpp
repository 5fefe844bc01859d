#include "cpprun/worker/internal/error_json.hpp"

namespace cpprun::worker {

void put_error_json(FixedText& to, const ErrorText& text, uint64_t unix_seconds) noexcept {
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

// The small part of the Itanium name mangling that most function names need. The library's own
// demangler allocates memory, which a signal handler must not.
#include "cpprun/worker/internal/elf_symbols.hpp"
#include "cpprun/worker/internal/fixed_text.hpp"

namespace cpprun::worker {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class NameReader {
 public:
  NameReader(std::string_view mangled, std::span<char> memory)
      : rest_(mangled), out_(memory.data(), memory.size()) {}

  // False: something in it is beyond us.
  bool read() {
    if (!take("_Z")) return false;
    if (take("N")) return nested();
    take("L");  // internal linkage
    if (take("St")) put("std");
    return word();
  }
  std::string_view name() const { return out_.view(); }

 private:
  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  void put(std::string_view part) {
    if (!out_.view().empty()) out_.put("::");
    out_.put(part);
    last_ = part;
  }

  // <length><characters>
  bool word() {
    size_t size = 0;
    if (rest_.empty() || !is_digit(rest_[0])) return false;
    while (!rest_.empty() && is_digit(rest_[0])) {
      size = size * 10 + static_cast<size_t>(rest_[0] - '0');
      if (size > rest_.size()) return false;
      rest_.remove_prefix(1);
    }
    if (size > rest_.size()) return false;
    const std::string_view text = rest_.substr(0, size);
    put(text.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : text);
    rest_.remove_prefix(size);
    return true;
  }

  bool special() {
    if (take("St")) return put("std"), true;
    for (const char* name : {"C1", "C2", "C3"}) {
      if (take(name)) return put(last_), true;
    }
    for (const char* name : {"D0", "D1", "D2"}) {
      if (take(name)) return out_.put("::~").put(last_), true;
    }
    if (take("cl")) return put("operator()"), true;
    return false;
  }

  bool nested() {
    while (take("K") || take("V") || take("R") || take("O")) {
    }
    while (!take("E")) {
      take("L");
      if (!special() && !word()) return false;
    }
    return !out_.view().empty();
  }

  std::string_view rest_;
  FixedText out_;
  std::string_view last_;
};

}  // namespace

std::string_view readable_name(std::string_view mangled, std::span<char> memory) noexcept {
  NameReader reader(mangled, memory);
  return reader.read() ? reader.name() : mangled;
}

}  // namespace cpprun::worker

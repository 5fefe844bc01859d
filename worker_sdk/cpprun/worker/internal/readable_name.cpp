// Parses the part of the Itanium C++ ABI's name mangling that function names need, and skips types.
// The runtime's demangler allocates memory, which a signal handler must not do.
#include "cpprun/worker/internal/elf_symbols.hpp"
#include "cpprun/worker/internal/fixed_text.hpp"

namespace cpprun::worker {
namespace {

constexpr std::string_view kOpens = "NIJXFZ";    // each is closed by an E
constexpr std::string_view kPairs = "tabsiodn";  // after S or D: an abbreviation of two letters
constexpr int kDepthMax = 8;                     // nested local functions
constexpr int kSkipDepthMax = 32;                // nested lambdas and values

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The unread part of a mangled name. Functions return false if the next characters are not what
// they expect.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool is_done() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_[0]; }
  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  void skip() {
    if (!rest_.empty()) rest_.remove_prefix(1);
  }
  void skip_digits() {
    while (is_digit(peek())) skip();
  }

  // <length><characters>
  bool word(std::string_view& into) {
    size_t size = 0;
    if (!is_digit(peek())) return false;
    for (; is_digit(peek()); skip()) {
      size = size * 10 + static_cast<size_t>(peek() - '0');
      if (size > rest_.size()) return false;
    }
    if (size > rest_.size()) return false;
    into = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  // Skips types, values and names up to the E that closes the current scope.
  bool skip_to_end() {
    for (int depth = 1; depth > 0;) {
      if (is_done() || !skip_one(depth)) return false;
    }
    return true;
  }

  // S_, S1A_ (a substitution), T_, T0_ (a template parameter).
  bool skip_reference() {
    skip();
    while (is_digit(peek()) || (peek() >= 'A' && peek() <= 'Z')) skip();
    return take("_");
  }

 private:
  bool skip_one(int& depth) {
    std::string_view ignored;
    if (is_digit(peek())) return word(ignored);
    if (take("E")) return --depth, true;
    if (take("L_Z")) return ++depth, true;
    if (take("L")) return is_digit(peek()) || deeper(&Cursor::skip_value);
    if (peek() == 'S' || peek() == 'T') return skip_substitution();
    if (take("Ul")) return deeper(&Cursor::skip_to_end) && skip_number();
    if (take("Ut") || take("A") || take("Dv")) return skip_number();
    if (take("DT") || take("Dt")) return ++depth, true;
    if (take("_")) return skip_digits(), true;  // distinguishes local entities of one name
    if (kOpens.find(peek()) != std::string_view::npos) ++depth;
    skip();
    return true;
  }

  // Limits recursion, because a handler's stack is small.
  bool deeper(bool (Cursor::*skips)()) {
    if (depth_ == kSkipDepthMax) return false;
    ++depth_;
    const bool is_good = (this->*skips)();
    --depth_;
    return is_good;
  }

  bool skip_number() {
    skip_digits();
    return take("_");
  }

  bool skip_substitution() {
    if (rest_.size() > 1 && peek() == 'S' && kPairs.find(rest_[1]) != std::string_view::npos) {
      rest_.remove_prefix(2);
      return true;
    }
    return skip_reference();
  }

  // <type><number>E, after an L.
  bool skip_value() {
    int depth = 0;
    do {
      if (is_done() || !skip_one(depth)) return false;
    } while (depth > 0);
    take("n");
    skip_digits();
    return take("E");
  }

  std::string_view rest_;
  int depth_ = 0;
};

class NameReader {
 public:
  NameReader(std::string_view mangled, std::span<char> memory)
      : in_(mangled), out_(memory.data(), memory.size()) {}

  // False: the name has something that this parser does not know.
  bool read() { return in_.take("_Z") && name(kDepthMax); }
  std::string_view text() const { return out_.view(); }

 private:
  void put(std::string_view part) {
    if (!out_.view().empty()) out_.put("::");
    out_.put(part);
    last_ = part;
  }

  bool name(int depth) {
    if (in_.take("Z")) return depth > 0 && local(depth);
    if (in_.take("N")) return nested();
    in_.take("L");  // internal linkage
    if (in_.take("St")) put("std");
    return word() && arguments();
  }

  // Z <function> E <entity>
  bool local(int depth) {
    if (!name(depth - 1) || !in_.skip_to_end()) return false;
    return lambda() || name(depth - 1);
  }

  bool nested() {
    while (in_.take("K") || in_.take("V") || in_.take("R") || in_.take("O")) {
    }
    while (!in_.take("E")) {
      in_.take("L");
      if (!special() && !lambda() && !word()) return false;
      if (!arguments()) return false;
    }
    return !out_.view().empty();
  }

  bool word() {
    std::string_view text;
    if (!in_.word(text)) return false;
    put(text.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : text);
    while (in_.take("B")) {  // an ABI tag, such as cxx11
      if (!in_.word(text)) return false;
    }
    return true;
  }

  // Template arguments, if there are any.
  bool arguments() {
    if (!in_.take("I")) return true;
    out_.put("<>");
    return in_.skip_to_end();
  }

  bool lambda() {
    if (!in_.take("Ul")) return false;
    put("{lambda}");
    if (!in_.skip_to_end()) return false;
    in_.skip_digits();
    return in_.take("_");
  }

  bool special() {
    if (in_.take("St")) return put("std"), true;
    for (const char* constructor : {"C1", "C2", "C3"}) {
      if (in_.take(constructor)) return put(last_), true;
    }
    for (const char* destructor : {"D0", "D1", "D2"}) {
      if (in_.take(destructor)) return out_.put("::~").put(last_), true;
    }
    if (in_.take("cl")) return put("operator()"), true;
    return false;
  }

  Cursor in_;
  FixedText out_;
  std::string_view last_;
};

}  // namespace

std::string_view readable_name(std::string_view mangled, std::span<char> memory) noexcept {
  NameReader reader(mangled, memory);
  return reader.read() ? reader.text() : mangled;
}

}  // namespace cpprun::worker

// The TCPStore protocol of torch as a parser: bytes in, views of whole commands out.
//
// Pure and single-threaded; owned by whoever owns the connection. Not a buffer and not a store: the
// caller keeps the bytes, and the views of a Command point into them. Encoders are in
// tcpstore_encode.hpp, the choice of a dialect by a connection's first bytes is in sniff.hpp. The
// wire is described in docs/protocol.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/limits/store.hpp"

namespace cpprun::tcpstore {

inline constexpr uint32_t kMagic = 0x3C85F7CE;
inline constexpr uint8_t kReady = 0;         // CHECK: all present; WAIT and BARRIER: go on
inline constexpr uint8_t kNotReady = 1;      // CHECK: something is missing
inline constexpr uint8_t kWaitCanceled = 1;  // CANCEL_WAIT
inline constexpr uint8_t kWatching = 3;      // WATCH_KEY (2.0): registered

// What a command asks for. The numbers are the codes of torch 2.2 and later.
enum class Op : uint8_t {
  Validate,
  Set,
  CompareSet,
  Get,
  Add,
  Check,
  Wait,
  GetNumKeys,
  DeleteKey,
  Append,
  MultiGet,
  MultiSet,
  CancelWait,
  Ping,
  QueuePush,
  QueuePop,
  QueueLen,
  ListKeys,
  Barrier,
  WatchKey,  // torch 2.0 only; has no modern code
};
inline constexpr size_t kOps = 20;

const char* name(Op op);

// Which torch talks. Legacy = 2.0 or 2.1, not known yet: they differ in codes 7 and up, and the
// first of those decides.
enum class Dialect : uint8_t { Modern, Legacy, Legacy20, Legacy21 };

// `count` strings of u64 length + bytes, one after the other in memory that has been checked
// already.
class Strings {
 public:
  class Iterator {
   public:
    Iterator(const char* at, size_t left) : at_(at), left_(left) {}
    std::string_view operator*() const;
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return left_ != other.left_; }

   private:
    const char* at_;
    size_t left_;
  };

  Strings() = default;
  Strings(const char* first, size_t count) : first_(first), count_(count) {}
  size_t size() const { return count_; }
  Iterator begin() const { return {first_, count_}; }
  Iterator end() const { return {nullptr, 0}; }

 private:
  const char* first_ = nullptr;
  size_t count_ = 0;
};

// One whole command. Which fields mean something depends on `op`; all views die with the caller's
// bytes.
struct Command {
  Op op = Op::Ping;
  std::string_view key;
  std::string_view value;     // SET, APPEND, QUEUE_PUSH; COMPARE_SET: desired
  std::string_view expected;  // COMPARE_SET
  int64_t number = 0;         // ADD: delta; BARRIER: world size; PING: nonce
  Strings items;              // CHECK, WAIT, MULTI_GET: keys; MULTI_SET: key, value, key, value ...
};

struct Limits {
  size_t key_bytes = limits::kStoreKeyBytes;
  size_t value_bytes = limits::kStoreValueBytes;
  size_t list_items = limits::kStoreListItems;
  size_t command_bytes = limits::kStoreCommandBytes;
};

struct Parsed {
  enum class Kind : uint8_t { Whole, NeedMore, Broken };
  Kind kind = Kind::Broken;
  size_t size =
      0;  // Whole: bytes used up; NeedMore: less than this many bytes cannot be a whole command
  const char* why = "";  // Broken: what was wrong, for the log
};

// Reads one connection. Remembers how far an incomplete list was checked, so that feeding it in
// pieces stays linear.
class Parser {
 public:
  explicit Parser(Dialect dialect, const Limits& limits = {})
      : dialect_(dialect), limits_(limits) {}

  // `bytes` start at a command's first byte and hold everything received since. Until a command
  // came out whole, each call must show the same bytes again, with more behind them. `command` is
  // only filled if the answer is Whole.
  Parsed parse(std::span<const uint8_t> bytes, Command& command);

  Dialect dialect() const { return dialect_; }

 private:
  struct Cursor;
  bool read(Cursor& cursor, uint8_t code, Command& command);
  bool read_validate(Cursor& cursor);
  bool read_strings(Cursor& cursor, bool has_values, Command& command);
  bool read_ambiguous(Cursor& cursor, Command& command);
  bool decode(uint8_t code, Op& op);

  Dialect dialect_;
  Limits limits_;
  bool is_validated_ = false;  // Modern: the first command was VALIDATE
  size_t items_checked_ = 0;   // of the list that is still incomplete
  size_t checked_to_ = 0;      // where the first unchecked string starts
};

}  // namespace cpprun::tcpstore

// Parser of torch's TCPStore protocol: bytes in, views of whole commands out.
//
// Pure and single-threaded; belongs to a connection. The caller keeps the bytes, and the views of a
// Command point into them. tcpstore_encode.hpp has the encoders; sniff.hpp chooses the dialect by a
// connection's first bytes. docs/protocol.md describes the wire format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/limits/store.hpp"

namespace cpprun::tcpstore {

inline constexpr uint32_t kMagic = 0x3C85F7CE;
inline constexpr uint8_t kReady = 0;         // CHECK: all present; WAIT and BARRIER: released
inline constexpr uint8_t kNotReady = 1;      // CHECK: a key is missing
inline constexpr uint8_t kWaitCanceled = 1;  // CANCEL_WAIT

// The numbers are the codes of torch 2.2 and later.
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
};
inline constexpr size_t kOps = 19;

const char* name(Op op);

// The client's torch version. Legacy is 2.0 or 2.1, not known yet: they differ from code 7 on, and
// the first such code decides.
enum class Dialect : uint8_t { Modern, Legacy, Legacy20, Legacy21 };

// `count` strings of u64 length + bytes, contiguous in memory that the parser has checked.
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

// One whole command. `op` decides which fields are set; the views are valid as long as the caller's
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
  size_t size = 0;       // Whole: bytes consumed; NeedMore: lower bound of the command's size
  const char* why = "";  // Broken: the reason, for the log
};

// Reads one connection. Remembers how far an incomplete list was checked, so that parsing a list in
// pieces stays linear.
class Parser {
 public:
  explicit Parser(Dialect dialect, const Limits& limits = {})
      : dialect_(dialect), limits_(limits) {}

  // `bytes` start at a command's first byte and hold everything received since. Until the result is
  // Whole, each call must pass the same bytes with more appended. Only Whole fills `command`.
  Parsed parse(std::span<const uint8_t> bytes, Command& command);

  Dialect dialect() const { return dialect_; }
  // The start of the first key in an incomplete command; "" if there is none yet. For the log.
  std::string_view first_key(std::span<const uint8_t> bytes) const;

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
  size_t items_checked_ = 0;   // of the incomplete list
  size_t checked_to_ = 0;      // offset of the first unchecked string
};

}  // namespace cpprun::tcpstore

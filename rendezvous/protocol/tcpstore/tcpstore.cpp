#include "rendezvous/protocol/tcpstore/tcpstore.hpp"

#include <algorithm>
#include <cstring>

namespace cpprun::tcpstore {
namespace {

template <class T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

constexpr const char* kNames[kOps] = {
    "VALIDATE",   "SET",        "COMPARE_SET", "GET",       "ADD",       "CHECK",       "WAIT",
    "GETNUMKEYS", "DELETE_KEY", "APPEND",      "MULTI_GET", "MULTI_SET", "CANCEL_WAIT", "PING",
    "QUEUE_PUSH", "QUEUE_POP",  "QUEUE_LEN",   "LIST_KEYS", "BARRIER"};

constexpr Op kLegacyOps[] = {Op::Set,    Op::CompareSet, Op::Get,        Op::Add,
                             Op::Check,  Op::Wait,       Op::GetNumKeys, Op::DeleteKey,
                             Op::Append, Op::MultiGet,   Op::MultiSet,   Op::CancelWait};
constexpr uint8_t kFirstAmbiguous = 7;  // 2.0: WATCH_KEY, which is refused; 2.1: DELETE_KEY
constexpr uint8_t kAmbiguous = 8;       // 2.0: DELETE_KEY; 2.1: APPEND

}  // namespace

const char* name(Op op) { return kNames[static_cast<size_t>(op)]; }

std::string_view Strings::Iterator::operator*() const {
  return {at_ + sizeof(uint64_t), load<uint64_t>(at_)};
}

Strings::Iterator& Strings::Iterator::operator++() {
  at_ += sizeof(uint64_t) + load<uint64_t>(at_);
  --left_;
  return *this;
}

// Walks over the bytes. A read that fails returns false and sets `at_least` or `broken`.
struct Parser::Cursor {
  std::span<const uint8_t> bytes;
  const Limits& limits;
  size_t at = 0;
  size_t at_least = 0;
  const char* broken = nullptr;

  bool need(size_t more) {
    if (bytes.size() - at >= more) return true;
    at_least = at + more;
    return false;
  }
  bool fail(const char* why) {
    broken = why;
    return false;
  }
  template <class T>
  bool number(T& out) {
    if (!need(sizeof(T))) return false;
    out = load<T>(bytes.data() + at);
    at += sizeof(T);
    return true;
  }
  // Checks the length before it waits for the bytes.
  bool string(std::string_view& out, size_t limit, const char* too_long) {
    uint64_t length = 0;
    if (!number(length)) return false;
    if (length > limit) return fail(too_long);
    if (at + length > limits.command_bytes) return fail("the command is too long");
    if (!need(length)) return false;
    out = {reinterpret_cast<const char*>(bytes.data() + at), length};
    at += length;
    return true;
  }
  bool key(std::string_view& out) { return string(out, limits.key_bytes, "a key is too long"); }
  bool value(std::string_view& out) {
    return string(out, limits.value_bytes, "a value is too long");
  }
};

// Code, number of strings if it is a list, length of the key, key.
std::string_view Parser::first_key(std::span<const uint8_t> bytes) const {
  constexpr size_t kNumber = sizeof(uint64_t);
  if (bytes.empty()) return {};
  const uint8_t code = bytes[0];
  Op op = static_cast<Op>(code);
  if (dialect_ != Dialect::Modern) op = code < std::size(kLegacyOps) ? kLegacyOps[code] : Op::Ping;
  const bool is_list =
      op == Op::Check || op == Op::Wait || op == Op::MultiGet || op == Op::MultiSet;
  const size_t at = is_list ? 1 + kNumber : 1;
  if (bytes.size() < at + kNumber) return {};
  const auto length = load<uint64_t>(bytes.data() + at);
  const std::span<const uint8_t> rest = bytes.subspan(at + kNumber);
  return {reinterpret_cast<const char*>(rest.data()), std::min<size_t>(length, rest.size())};
}

Parsed Parser::parse(std::span<const uint8_t> bytes, Command& command) {
  if (bytes.empty()) return {Parsed::Kind::NeedMore, 1, ""};
  Cursor cursor{bytes, limits_, 1};
  if (read(cursor, bytes[0], command)) {
    items_checked_ = 0;
    return {Parsed::Kind::Whole, cursor.at, ""};
  }
  if (cursor.broken != nullptr) return {Parsed::Kind::Broken, 0, cursor.broken};
  return {Parsed::Kind::NeedMore, cursor.at_least, ""};
}

bool Parser::read(Cursor& cursor, uint8_t code, Command& command) {
  if (dialect_ == Dialect::Modern && !is_validated_) {
    if (code != 0) return cursor.fail("the first command is not VALIDATE");
    command.op = Op::Validate;
    return read_validate(cursor);
  }
  if (dialect_ == Dialect::Legacy && code == kAmbiguous) return read_ambiguous(cursor, command);
  if (!decode(code, command.op)) return cursor.fail("an unknown command");
  switch (command.op) {
    case Op::Validate: return cursor.fail("VALIDATE came twice");
    case Op::Set:
    case Op::Append:
    case Op::QueuePush: return cursor.key(command.key) && cursor.value(command.value);
    case Op::CompareSet:
      return cursor.key(command.key) && cursor.value(command.expected) &&
             cursor.value(command.value);
    case Op::Get:
    case Op::DeleteKey:
    case Op::QueuePop:
    case Op::QueueLen: return cursor.key(command.key);
    case Op::Add:
    case Op::Barrier: return cursor.key(command.key) && cursor.number(command.number);
    case Op::Check:
    case Op::Wait:
    case Op::MultiGet: return read_strings(cursor, false, command);
    case Op::MultiSet: return read_strings(cursor, true, command);
    case Op::GetNumKeys:
    case Op::CancelWait:
    case Op::ListKeys: return true;
    case Op::Ping: {
      uint32_t nonce = 0;
      if (!cursor.number(nonce)) return false;
      command.number = nonce;
      return true;
    }
  }
  return cursor.fail("an unknown command");
}

bool Parser::read_validate(Cursor& cursor) {
  uint32_t magic = 0;
  if (!cursor.number(magic)) return false;
  if (magic != kMagic) return cursor.fail("VALIDATE with a wrong magic number");
  is_validated_ = true;
  return true;
}

bool Parser::read_strings(Cursor& cursor, bool has_values, Command& command) {
  uint64_t count = 0;
  if (!cursor.number(count)) return false;
  if (count > limits_.list_items) return cursor.fail("too many keys in one command");
  size_t strings = has_values ? 2 * count : count;
  size_t first = cursor.at;
  if (items_checked_ != 0) cursor.at = checked_to_;
  std::string_view ignored;
  for (size_t i = items_checked_; i < strings; ++i) {
    items_checked_ = i;
    checked_to_ = cursor.at;
    bool is_value = has_values && i % 2 == 1;
    if (is_value ? cursor.value(ignored) : cursor.key(ignored)) continue;
    // Each further string needs at least its length field.
    if (cursor.broken == nullptr) cursor.at_least += (strings - i - 1) * sizeof(uint64_t);
    return false;
  }
  command.items = Strings(reinterpret_cast<const char*>(cursor.bytes.data()) + first, strings);
  return true;
}

// torch 2.0 sends DELETE_KEY and waits for the reply; 2.1 sends APPEND, key and value at once.
bool Parser::read_ambiguous(Cursor& cursor, Command& command) {
  if (!cursor.key(command.key)) return false;
  if (cursor.at == cursor.bytes.size()) {
    dialect_ = Dialect::Legacy20;
    command.op = Op::DeleteKey;
    return true;
  }
  command.op = Op::Append;
  if (!cursor.value(command.value)) return false;
  dialect_ = Dialect::Legacy21;
  return true;
}

bool Parser::decode(uint8_t code, Op& op) {
  if (dialect_ == Dialect::Modern) {
    op = static_cast<Op>(code);
    return code <= static_cast<uint8_t>(Op::Barrier);
  }
  if (code >= std::size(kLegacyOps)) return false;
  op = kLegacyOps[code];
  if (code < kFirstAmbiguous) return true;
  if (dialect_ == Dialect::Legacy) dialect_ = Dialect::Legacy21;
  if (dialect_ == Dialect::Legacy21) return true;
  op = Op::DeleteKey;
  return code == kAmbiguous;
}

}  // namespace cpprun::tcpstore

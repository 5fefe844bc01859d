#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"

#include <concepts>

#include "common/check.hpp"

namespace cpprun::tcpstore {
namespace {

// The protocol is little-endian, like every supported machine.
template <std::integral T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out.append(text);
}

template <class... Parts>
void put_all(std::string& out, Parts... parts) {
  (put(out, parts), ...);
}

uint8_t code_of(Op op, Dialect dialect) {
  if (dialect == Dialect::Modern) return static_cast<uint8_t>(op);
  if (dialect == Dialect::Legacy20 && op == Op::DeleteKey) return 8;
  CPPRUN_CHECK(op != Op::Validate && op <= Op::CancelWait);
  return static_cast<uint8_t>(static_cast<uint8_t>(op) - 1);  // 2.2 moved every code up by one
}

}  // namespace

void put_validate(std::string& out) { put_all(out, static_cast<uint8_t>(Op::Validate), kMagic); }

void put_ping(std::string& out, uint32_t nonce) {
  put_all(out, static_cast<uint8_t>(Op::Ping), nonce);
}

void put_write(std::string& out, Op op, std::string_view key, std::string_view value,
               Dialect dialect) {
  put_all(out, code_of(op, dialect), key, value);
}

void put_compare_set(std::string& out, std::string_view key, std::string_view expected,
                     std::string_view desired, Dialect dialect) {
  put_all(out, code_of(Op::CompareSet, dialect), key, expected, desired);
}

void put_key(std::string& out, Op op, std::string_view key, Dialect dialect) {
  put_all(out, code_of(op, dialect), key);
}

void put_number(std::string& out, Op op, std::string_view key, int64_t number, Dialect dialect) {
  put_all(out, code_of(op, dialect), key, number);
}

void put_keys(std::string& out, Op op, Keys keys, Dialect dialect) {
  put_all(out, code_of(op, dialect), uint64_t{keys.size()});
  for (std::string_view key : keys) put(out, key);
}

void put_multi_set(std::string& out, Keys keys, Keys values, Dialect dialect) {
  CPPRUN_CHECK(keys.size() == values.size());
  put_all(out, code_of(Op::MultiSet, dialect), uint64_t{keys.size()});
  for (size_t i = 0; i < keys.size(); ++i) put_all(out, keys[i], values[i]);
}

void put_bare(std::string& out, Op op, Dialect dialect) { put(out, code_of(op, dialect)); }

void reply_byte(std::string& out, uint8_t value) { put(out, value); }
void reply_number(std::string& out, int64_t value) { put(out, value); }
void reply_nonce(std::string& out, uint32_t value) { put(out, value); }
void reply_bytes(std::string& out, std::string_view value) { put(out, value); }

}  // namespace cpprun::tcpstore

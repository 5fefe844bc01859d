// Encoders of the TCPStore protocol: requests for clients and tests, replies for servers. Each
// appends to `out`.
// Pure. Keys are sent unchanged: the caller adds the '/' that torch puts in front of user keys.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rendezvous/protocol/tcpstore/tcpstore.hpp"

namespace cpprun::tcpstore {

using Keys = std::span<const std::string_view>;

// Requests. `dialect` changes only the command's code.
void put_validate(std::string& out);
void put_ping(std::string& out, uint32_t nonce);
// SET, APPEND, QUEUE_PUSH.
void put_write(std::string& out, Op op, std::string_view key, std::string_view value,
               Dialect dialect = Dialect::Modern);
void put_compare_set(std::string& out, std::string_view key, std::string_view expected,
                     std::string_view desired, Dialect dialect = Dialect::Modern);
// GET, DELETE_KEY, QUEUE_POP, QUEUE_LEN.
void put_key(std::string& out, Op op, std::string_view key, Dialect dialect = Dialect::Modern);
// ADD, BARRIER.
void put_number(std::string& out, Op op, std::string_view key, int64_t number,
                Dialect dialect = Dialect::Modern);
// CHECK, WAIT, MULTI_GET.
void put_keys(std::string& out, Op op, Keys keys, Dialect dialect = Dialect::Modern);
// Requires: as many values as keys.
void put_multi_set(std::string& out, Keys keys, Keys values, Dialect dialect = Dialect::Modern);
// GETNUMKEYS, CANCEL_WAIT, LIST_KEYS.
void put_bare(std::string& out, Op op, Dialect dialect = Dialect::Modern);

// Replies, the same in all dialects.
void reply_byte(std::string& out, uint8_t value);
void reply_number(std::string& out, int64_t value);
void reply_nonce(std::string& out, uint32_t value);
void reply_bytes(std::string& out, std::string_view value);

}  // namespace cpprun::tcpstore

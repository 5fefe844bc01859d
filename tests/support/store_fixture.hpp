// Shared by the tests of the store: a store, a sink that formats replies as text, and short forms
// of commands.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"
#include "rendezvous/store/store.hpp"

namespace cpprun {
using tcpstore::Command;
using tcpstore::Op;

// Replies as readable text, by session: "0" for a byte, "5" for a number, "'text'" for bytes.
class SpokenReplies : public ReplySink {
 public:
  void reply_byte(SessionId to, uint8_t value) override { add(to, "b", std::to_string(value), ""); }
  void reply_number(SessionId to, int64_t value) override {
    add(to, "", std::to_string(value), "");
  }
  void reply_nonce(SessionId to, uint32_t value) override {
    add(to, "n", std::to_string(value), "");
  }
  void reply_bytes(SessionId to, std::string_view value) override { add(to, "'", value, "'"); }
  void reply_value(SessionId to, const Value& value) override { reply_bytes(to, value.view()); }
  void refuse(SessionId to, std::string_view) override { add(to, "", "refused", ""); }

  std::map<uint64_t, std::string> replies;

 private:
  // Piece by piece: g++ 12 warns wrongly of overflows in sums of strings (GCC bug 105651).
  void add(SessionId to, std::string_view before, std::string_view word, std::string_view after) {
    std::string& all = replies[to.value];
    if (!all.empty()) all.append(" ");
    all.append(before).append(word).append(after);
  }
};

inline std::string in_quotes(std::string_view text) {
  std::string out = "'";
  return out.append(text).append("'");
}

class StoreTest : public testing::Test {
 protected:
  // All replies to `to` since the last call.
  std::string replies_to(uint64_t to) {
    std::string replies = std::move(sink_.replies[to]);
    sink_.replies.erase(to);
    return replies;
  }
  std::string run(uint64_t from, const Command& command) {
    store_.apply(SessionId(from), command, sink_);
    return replies_to(from);
  }
  std::string key(uint64_t from, Op op, std::string_view name) {
    Command c;
    c.op = op;
    c.key = name;
    return run(from, c);
  }
  std::string write(uint64_t from, Op op, std::string_view name, std::string_view value) {
    Command c;
    c.op = op;
    c.key = name;
    c.value = value;
    return run(from, c);
  }
  std::string set(uint64_t from, std::string_view name, std::string_view value) {
    return write(from, Op::Set, name, value);
  }
  std::string get(std::string_view name) { return key(99, Op::Get, name); }
  std::string number(uint64_t from, Op op, std::string_view name, int64_t n) {
    Command c;
    c.op = op;
    c.key = name;
    c.number = n;
    return run(from, c);
  }
  std::string compare_set(std::string_view name, std::string_view old, std::string_view desired) {
    Command c;
    c.op = Op::CompareSet;
    c.key = name;
    c.expected = old;
    c.value = desired;
    return run(98, c);
  }
  std::string list(uint64_t from, Op op, const std::vector<std::string>& names) {
    std::string raw;
    for (const std::string& name : names) tcpstore::reply_bytes(raw, name);
    Command c;
    c.op = op;
    c.items = tcpstore::Strings(raw.data(), names.size());
    return run(from, c);
  }
  std::string bare(uint64_t from, Op op) {
    Command c;
    c.op = op;
    return run(from, c);
  }
  void closed(uint64_t session) { store_.session_closed(SessionId(session), sink_); }

  Store store_;
  SpokenReplies sink_;
};

}  // namespace cpprun

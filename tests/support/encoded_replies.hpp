// A ReplySink that collects the bytes for each client, by session.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"
#include "rendezvous/store/store.hpp"

namespace cpprun {

class EncodedReplies : public ReplySink {
 public:
  void reply_byte(SessionId to, uint8_t v) override { tcpstore::reply_byte(replies[to.value], v); }
  void reply_number(SessionId to, int64_t v) override {
    tcpstore::reply_number(replies[to.value], v);
  }
  void reply_nonce(SessionId to, uint32_t v) override {
    tcpstore::reply_nonce(replies[to.value], v);
  }
  void reply_bytes(SessionId to, std::string_view v) override {
    tcpstore::reply_bytes(replies[to.value], v);
  }
  void reply_value(SessionId to, const Value& v) override { reply_bytes(to, v.view()); }
  void refuse(SessionId to, std::string_view) override {
    replies[to.value] += "refused";
    refused = to;
  }

  std::map<uint64_t, std::string> replies;
  std::optional<SessionId> refused;  // the newest; ending its session resets this
};

}  // namespace cpprun

// Decodes and checks replies of the TCPStore protocol for a client.
//
// Pure. Every reply starts with a head of known size: one byte, or the eight of a number or of a
// length. The caller reads the head and asks here what follows. An error (Protocol) means that the
// peer is no TCPStore or out of step; the caller must close the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/result.hpp"

namespace cpprun::tcpstore {

using Head = std::span<const uint8_t, 8>;

// ADD, GETNUMKEYS.
int64_t number_of(Head head);
// The number of bytes that follow: GET, COMPARE_SET, each value of MULTI_GET. Error: above `limit`.
Result<size_t> length_of(Head head, size_t limit);
// DELETE_KEY: whether the key existed.
Result<bool> was_deleted(Head head);
// QUEUE_LEN; QUEUE_POP, where an item follows unless the length is 0.
Result<int64_t> queue_length_of(Head head);
// CHECK: whether all keys are present.
Result<bool> is_present(uint8_t byte);

// The reply to a WAIT, which may cross a CANCEL_WAIT on the wire. The caller feeds each received
// byte until is_over().
class WaitReply {
 public:
  void cancel() { is_cancelled_ = true; }  // CANCEL_WAIT was sent
  Status on_byte(uint8_t byte);
  bool is_over() const { return is_over_; }
  bool is_ready() const {
    return is_ready_;
  }  // all keys exist, perhaps set just before the cancellation

 private:
  bool is_cancelled_ = false;
  bool is_ready_ = false;
  bool is_over_ = false;
};

}  // namespace cpprun::tcpstore

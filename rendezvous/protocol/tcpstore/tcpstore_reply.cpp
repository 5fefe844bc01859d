#include "rendezvous/protocol/tcpstore/tcpstore_reply.hpp"

#include <cstring>
#include <string>

#include "rendezvous/protocol/tcpstore/tcpstore.hpp"

namespace cpprun::tcpstore {
namespace {

Error bad(const std::string& text) {
  return Error{ErrorKind::Protocol, text + "; the peer does not speak torch's TCPStore protocol"};
}

}  // namespace

int64_t number_of(Head head) {
  int64_t number = 0;
  std::memcpy(&number, head.data(), sizeof number);
  return number;
}

Result<size_t> length_of(Head head, size_t limit) {
  auto length = static_cast<uint64_t>(number_of(head));
  if (length > limit) {
    return bad("a value of " + std::to_string(length) + " bytes was announced, at most " +
               std::to_string(limit) + " are taken");
  }
  return static_cast<size_t>(length);
}

Result<bool> was_deleted(Head head) {
  int64_t number = number_of(head);
  if (number == 0 || number == 1) return number == 1;
  return bad("a deletion was answered with " + std::to_string(number) + " instead of 0 or 1");
}

Result<int64_t> queue_length_of(Head head) {
  int64_t number = number_of(head);
  if (number >= 0) return number;
  return bad("a queue's length was given as " + std::to_string(number));
}

Result<bool> is_present(uint8_t byte) {
  if (byte == kReady || byte == kNotReady) return byte == kReady;
  return bad("a check was answered with " + std::to_string(byte) + " instead of 0 or 1");
}

Status WaitReply::on_byte(uint8_t byte) {
  if (byte == kReady && !is_ready_) {
    is_ready_ = true;
    is_over_ = !is_cancelled_;  // the server still replies to the cancellation
    return {};
  }
  if (byte == kWaitCanceled && is_cancelled_) {
    is_over_ = true;
    return {};
  }
  return bad("a wait was answered with " + std::to_string(byte));
}

}  // namespace cpprun::tcpstore

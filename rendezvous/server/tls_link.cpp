#include "rendezvous/server/tls_link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/limits/tls.hpp"

namespace cpprun {

void TlsLink::feed(std::span<const uint8_t> bytes) {
  stream_->feed(bytes);
  if (stream_->shake_hands() != TlsStream::State::Handshake) place_.reset();
}

size_t TlsLink::read(std::span<uint8_t> room) {
  return state() == TlsStream::State::Handshake ? 0 : stream_->read(room);
}

void TlsLink::encrypt_some(Outbox& out) {
  if (state() == TlsStream::State::Failed) return out.clear();
  if (state() == TlsStream::State::Handshake) return;
  std::array<iovec, 16> parts;
  const size_t count = out.gather(parts);
  for (size_t i = 0; i < count && stream_->output_size() < limits::kTlsUnsentBytes; ++i) {
    const size_t size = std::min(parts[i].iov_len, limits::kTlsUnsentBytes);
    stream_->write({static_cast<const uint8_t*>(parts[i].iov_base), size});
    out.sent(size);
    if (size < parts[i].iov_len) return;
  }
}

TlsLink::Sent TlsLink::flush(int fd, Outbox& out) {
  for (;;) {
    if (done_ == waiting_.size()) {
      if (stream_->output_size() == 0 && !out.empty()) encrypt_some(out);
      waiting_ = stream_->take_output();
      done_ = 0;
      if (waiting_.empty()) return Sent::All;
    }
    const ssize_t sent =
        ::send(fd, waiting_.data() + done_, waiting_.size() - done_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      done_ += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Sent::Blocked;
    } else if (errno != EINTR) {
      return Sent::Broken;
    }
  }
}

void TlsLink::end_output() {
  if (has_ended_output_) return;
  has_ended_output_ = true;
  stream_->end_output();
}

}  // namespace cpprun

#include "launcher/ssh/merged_output.hpp"

#include <errno.h>

#include "common/limits/ssh.hpp"

namespace cpprun::ssh {

bool MergedOutput::is_full() const { return pending_.size() >= limits::kMergedOutputBytes; }

void MergedOutput::add(std::string_view text) {
  if (is_broken_) return;
  pending_ += text;
  flush();
}

void MergedOutput::flush() {
  size_t written = 0;
  while (written < pending_.size()) {
    const ssize_t n = output_.write_some(std::string_view(pending_).substr(written));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) is_broken_ = true;
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  pending_.erase(0, written);
  if (is_broken_) pending_.clear();
}

}  // namespace cpprun::ssh

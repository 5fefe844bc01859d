#include "launcher/ssh/plan/relay_frames.hpp"

#include <string.h>

#include "common/limits/ssh.hpp"

namespace cpprun::ssh {
namespace {

// Kind, process, size of the payload.
constexpr size_t kHeaderBytes = 9;
constexpr size_t kProcessAt = 1;
constexpr size_t kSizeAt = 5;

void append_number(std::string& out, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((number >> shift) & 0xff);
}

uint32_t number_at(std::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = at; i < at + sizeof number; ++i)
    number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

}  // namespace

std::string relay_frame(RelayFrame::Kind kind, uint32_t process, std::string_view payload) {
  std::string out;
  out.reserve(kHeaderBytes + payload.size());
  out += static_cast<char>(kind);
  append_number(out, process);
  append_number(out, static_cast<uint32_t>(payload.size()));
  out += payload;
  return out;
}

std::string start_payload(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += word + '\0';
  return out;
}

std::vector<std::string> words_of_start(std::string_view payload) {
  std::vector<std::string> words;
  for (size_t end = 0; (end = payload.find('\0')) != std::string_view::npos;) {
    words.emplace_back(payload.substr(0, end));
    payload.remove_prefix(end + 1);
  }
  return words;
}

std::string end_payload(const ProcessEnd& end) {
  return {static_cast<char>(end.code), static_cast<char>(end.was_killed ? 1 : 0)};
}

std::optional<ProcessEnd> end_of_payload(std::string_view payload) {
  if (payload.size() != 2) return std::nullopt;
  return ProcessEnd{static_cast<uint8_t>(payload[0]), payload[1] != 0};
}

RelayFrameReader::~RelayFrameReader() { ::explicit_bzero(received_.data(), received_.size()); }

void RelayFrameReader::drop(size_t bytes) {
  ::explicit_bzero(received_.data(), bytes);
  received_.erase(0, bytes);
}

Result<std::optional<RelayFrame>> RelayFrameReader::next() {
  drop(shown_);
  shown_ = 0;
  if (received_.size() < kHeaderBytes) return std::optional<RelayFrame>();
  const auto kind = static_cast<RelayFrame::Kind>(received_[0]);
  const size_t size = number_at(received_, kSizeAt);
  if (kind < RelayFrame::Kind::StartAgent || kind > RelayFrame::Kind::Refused ||
      size > limits::kRelayFrameBytes) {
    return Error{ErrorKind::Protocol, "the peer is no relay of this version"};
  }
  if (received_.size() < kHeaderBytes + size) return std::optional<RelayFrame>();
  shown_ = kHeaderBytes + size;
  RelayFrame frame;
  frame.kind = kind;
  frame.process = number_at(received_, kProcessAt);
  frame.payload = std::string_view(received_).substr(kHeaderBytes, size);
  return std::optional<RelayFrame>(frame);
}

}  // namespace cpprun::ssh

#include "rendezvous/protocol/worker/worker_channel.hpp"

#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/limits/channel.hpp"

namespace cpprun::channel {
namespace {

constexpr uint32_t kMagic = 0x57525043;  // "CPRW"

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class Number>
  void number(Number value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void flag(bool value) { number(uint32_t{value}); }
  // Last field of a body; has no length.
  void text(const std::string& value) {
    out_.append(std::string_view(value).substr(0, limits::kWorkerReportBytes));
  }

 private:
  std::string& out_;
};

// Reads what Writer writes; after the first error it only remembers the error.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> body) : rest_(body) {}

  template <class Number>
  void number(Number& into) {
    is_good_ = is_good_ && rest_.size() >= sizeof into;
    if (!is_good_) return;
    std::memcpy(&into, rest_.data(), sizeof into);
    rest_ = rest_.subspan(sizeof into);
  }
  void flag(bool& into) {
    uint32_t value = 0;
    number(value);
    is_good_ = is_good_ && value <= 1;
    into = value == 1;
  }
  void text(std::string& into) {
    is_good_ = is_good_ && rest_.size() <= limits::kWorkerReportBytes;
    if (is_good_) into.assign(rest_.begin(), rest_.end());
    rest_ = {};
  }
  bool is_done() const { return is_good_ && rest_.empty(); }

 private:
  std::span<const uint8_t> rest_;
  bool is_good_ = true;
};

// The body of each message, once for both directions: a const M is written, other M is read into.
template <class M, class T>
concept Of = std::is_same_v<std::remove_const_t<M>, T>;

template <class Body, Of<Hello> M>
void walk(Body& body, M& message) {
  body.number(message.version);
}
template <class Body, Of<Page> M>
void walk(Body& body, M& message) {
  body.number(message.bytes);
}
template <class Body, Of<Ready> M>
void walk(Body&, M&) {}
template <class Body, Of<Report> M>
void walk(Body& body, M& message) {
  body.text(message.text);
}
template <class Body, Of<ArenaRequest> M>
void walk(Body& body, M& message) {
  body.number(message.request_id);
  body.number(message.bytes);
}
template <class Body, Of<PeerArenaRequest> M>
void walk(Body& body, M& message) {
  body.number(message.request_id);
  body.number(message.local_rank);
}
template <class Body, Of<Arena> M>
void walk(Body& body, M& message) {
  body.number(message.request_id);
  body.number(message.bytes);
  body.text(message.refusal);
}
template <class Body, Of<CommitRequest> M>
void walk(Body& body, M& message) {
  body.number(message.request_id);
  body.number(message.step);
}
template <class Body, Of<Permission> M>
void walk(Body& body, M& message) {
  body.number(message.request_id);
  body.flag(message.is_permitted);
  body.text(message.why);
}
template <class Body, Of<Snapshot> M>
void walk(Body& body, M& message) {
  body.number(message.step);
  body.text(message.path);
}
template <class Body, Of<Resumed> M>
void walk(Body& body, M& message) {
  body.flag(message.fell_back);
  body.number(message.step);
  body.text(message.path);
}

template <class Body, Of<FaultPermitRequest> M>
void walk(Body& body, M& message) {
  body.number(message.request_id);
  body.number(message.fault);
  body.number(message.step);
  body.number(message.epoch);
}
template <class Body, Of<Began> M>
void walk(Body& body, M& message) {
  body.number(message.step);
  body.number(message.epoch);
}
template <class Body, Of<FirstStep> M>
void walk(Body& body, M& message) {
  body.number(message.step);
}

// A message's type on the wire is its index in the variant.
template <size_t... kTypes>
bool read_as(uint32_t type, Reader& body, Message& into, std::index_sequence<kTypes...>) {
  const auto read = [&](auto place) {
    walk(body, into.emplace<decltype(place)::value>());
    return true;
  };
  return ((type == kTypes && read(std::integral_constant<size_t, kTypes>())) || ...);
}

Error bad(const char* why) {
  return Error{ErrorKind::Protocol, std::string("no message of the worker channel: ") + why};
}

}  // namespace

std::string encode(const Message& message) {
  std::string out;
  Writer writer(out);
  writer.number(kMagic);
  writer.number(static_cast<uint32_t>(message.index()));
  std::visit([&writer](const auto& m) { walk(writer, m); }, message);
  return out;
}

Result<Message> decode(std::span<const uint8_t> bytes) {
  if (bytes.size() > kMessageBytes) return bad("it is too long");
  uint32_t magic = 0, type = 0;
  Reader reader(bytes);
  reader.number(magic);
  reader.number(type);
  if (magic != kMagic) return bad("it has another magic number");
  if (bytes.size() < 8) return bad("it is too short");
  Message message;
  const auto types = std::make_index_sequence<std::variant_size_v<Message>>();
  if (!read_as(type, reader, message, types)) return bad("an unknown type");
  if (!reader.is_done()) return bad("its body has another length");
  return message;
}

std::optional<uint32_t> request_id_of(const Message& message) {
  if (const auto* arena = std::get_if<Arena>(&message)) return arena->request_id;
  if (const auto* leave = std::get_if<Permission>(&message)) return leave->request_id;
  return std::nullopt;
}

}  // namespace cpprun::channel

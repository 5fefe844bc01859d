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
  void operator()(const auto&... fields) { (put(fields), ...); }

 private:
  template <class Number>
  void put(Number value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(bool value) { put(uint32_t{value}); }
  // Last field of a body; has no length.
  void put(const std::string& value) {
    out_.append(std::string_view(value).substr(0, limits::kWorkerReportBytes));
  }

  std::string& out_;
};

// Reads what Writer writes; after the first error it only remembers the error.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> body) : rest_(body) {}
  void operator()(auto&... fields) { (get(fields), ...); }
  bool is_done() const { return is_good_ && rest_.empty(); }

 private:
  template <class Number>
  void get(Number& into) {
    is_good_ = is_good_ && rest_.size() >= sizeof into;
    if (!is_good_) return;
    std::memcpy(&into, rest_.data(), sizeof into);
    rest_ = rest_.subspan(sizeof into);
  }
  void get(bool& into) {
    uint32_t value = 0;
    get(value);
    is_good_ = is_good_ && value <= 1;
    into = value == 1;
  }
  void get(std::string& into) {
    is_good_ = is_good_ && rest_.size() <= limits::kWorkerReportBytes;
    if (is_good_) into.assign(rest_.begin(), rest_.end());
    rest_ = {};
  }

  std::span<const uint8_t> rest_;
  bool is_good_ = true;
};

// The body of each message, once for both directions: a const M is written, other M is read into.
template <class M, class T>
concept Of = std::is_same_v<std::remove_const_t<M>, T>;

void walk(auto& body, Of<Hello> auto& m) { body(m.version); }
void walk(auto& body, Of<Page> auto& m) { body(m.bytes); }
void walk(auto&, Of<Ready> auto&) {}
void walk(auto& body, Of<Report> auto& m) { body(m.text); }
void walk(auto& body, Of<ArenaRequest> auto& m) { body(m.request_id, m.bytes); }
void walk(auto& body, Of<PeerArenaRequest> auto& m) { body(m.request_id, m.local_rank); }
void walk(auto& body, Of<Arena> auto& m) { body(m.request_id, m.bytes, m.refusal); }
void walk(auto& body, Of<CommitRequest> auto& m) { body(m.request_id, m.step); }
void walk(auto& body, Of<Permission> auto& m) { body(m.request_id, m.is_permitted, m.why); }
void walk(auto& body, Of<Snapshot> auto& m) { body(m.step, m.path); }
void walk(auto& body, Of<Resumed> auto& m) { body(m.fell_back, m.step, m.path); }
void walk(auto& body, Of<FaultPermitRequest> auto& m) {
  body(m.request_id, m.fault, m.step, m.epoch);
}
void walk(auto& body, Of<Began> auto& m) { body(m.step, m.epoch); }
void walk(auto& body, Of<FirstStep> auto& m) { body(m.step); }
void walk(auto&, Of<Elastic> auto&) {}
void walk(auto&, Of<Regroup> auto&) {}
void walk(auto& body, Of<Released> auto& m) { body(m.step); }
void walk(auto&, Of<NewRound> auto&) {}
void walk(auto& body, Of<ChecksumRequest> auto& m) { body(m.request_id, m.ranges); }
void walk(auto& body, Of<Checksums> auto& m) { body(m.request_id, m.is_given, m.text); }

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
  writer(kMagic, static_cast<uint32_t>(message.index()));
  std::visit([&writer](const auto& m) { walk(writer, m); }, message);
  return out;
}

Result<Message> decode(std::span<const uint8_t> bytes) {
  if (bytes.size() > kMessageBytes) return bad("it is too long");
  uint32_t magic = 0, type = 0;
  Reader reader(bytes);
  reader(magic, type);
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
  if (const auto* answer = std::get_if<Permission>(&message)) return answer->request_id;
  if (const auto* given = std::get_if<Checksums>(&message)) return given->request_id;
  return std::nullopt;
}

}  // namespace cpprun::channel

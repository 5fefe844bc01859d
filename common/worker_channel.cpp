#include "common/worker_channel.hpp"

#include <cstring>
#include <string_view>

namespace cpprun::channel {
namespace {

constexpr uint32_t kMagic = 0x57525043;  // "CPRW"
constexpr size_t kHeadBytes = 8;

// A message's type on the wire is its place in the variant.
enum class Type : uint32_t { Hello, Page, Ready, Report };

void put(std::string& out, uint32_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

uint32_t number_at(std::span<const uint8_t> bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void put_body(std::string& out, const Hello& hello) {
  put(out, hello.version);
}
void put_body(std::string& out, const Page& page) {
  put(out, page.bytes);
}
void put_body(std::string&, const Ready&) {}
void put_body(std::string& out, const Report& report) {
  out.append(std::string_view(report.text).substr(0, limits::kWorkerReportBytes));
}

Error bad(const char* why) {
  return Error{ErrorKind::Protocol, std::string("no message of the worker channel: ") + why};
}

}  // namespace

std::string encode(const Message& message) {
  std::string out;
  put(out, kMagic);
  put(out, static_cast<uint32_t>(message.index()));
  std::visit([&out](const auto& m) { put_body(out, m); }, message);
  return out;
}

Result<Message> decode(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeadBytes) return bad("it is too short");
  if (bytes.size() > kMessageBytes) return bad("it is too long");
  if (number_at(bytes, 0) != kMagic) return bad("it has another magic number");
  const std::span<const uint8_t> body = bytes.subspan(kHeadBytes);
  switch (static_cast<Type>(number_at(bytes, 4))) {
    case Type::Hello:
      if (body.size() != 4) return bad("a hello of another length");
      return Message(Hello{number_at(body, 0)});
    case Type::Page:
      if (body.size() != 4) return bad("a page of another length");
      return Message(Page{number_at(body, 0)});
    case Type::Ready:
      if (!body.empty()) return bad("a ready of another length");
      return Message(Ready{});
    case Type::Report:
      return Message(Report{std::string(body.begin(), body.end())});
  }
  return bad("an unknown type");
}

}  // namespace cpprun::channel

#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"

#include <vector>

#include "common/text.hpp"

namespace cpprun::snapshot_protocol {
namespace {

constexpr std::string_view kFetch = "cpprun-snapshot-1";
constexpr std::string_view kBytes = "bytes ";
constexpr std::string_view kNo = "no ";

Error broken() { return Error{ErrorKind::Protocol, "what came is no word about snapshots"}; }

// Keeps the text on one line.
std::string flat(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::string ended(std::string line) {
  line.resize(std::min(line.size(), kLineBytes - 1));
  return line + "\n";
}

}  // namespace

std::string encode(const Request& request) {
  return ended(std::string(kFetch) + " " + request.secret + " " +
               std::to_string(request.snapshot.step) + " " + request.snapshot.id + " " +
               request.file);
}

std::string encode(const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::Bytes: return ended(std::string(kBytes) + std::to_string(answer.bytes));
    case Answer::Kind::Busy: return "busy\n";
    case Answer::Kind::Secret: return "secret\n";
    case Answer::Kind::No: break;
  }
  return ended(std::string(kNo) + flat(answer.why));
}

Result<Request> decode_request(std::string_view line) {
  constexpr size_t kWords = 4;  // before the file name, which may hold blanks
  std::vector<std::string> words;
  while (words.size() < kWords) {
    const size_t end = line.find(' ');
    if (end == std::string_view::npos || end == 0) return broken();
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  const std::optional<int64_t> step = text::parse_int(words[2]);
  if (words[0] != kFetch || !step || *step < 0 || line.empty()) return broken();
  return Request{words[1], {*step, words[3]}, std::string(line)};
}

Result<Answer> decode_answer(std::string_view line) {
  if (line == "busy") return Answer{Answer::Kind::Busy, 0, "too many others fetch from there"};
  if (line == "secret") {
    return Answer{Answer::Kind::Secret, 0, "its agent does not know this round"};
  }
  if (line.starts_with(kNo)) {
    return Answer{Answer::Kind::No, 0, flat(std::string(line.substr(kNo.size())))};
  }
  if (!line.starts_with(kBytes)) return broken();
  const std::optional<int64_t> bytes = text::parse_int(line.substr(kBytes.size()));
  if (!bytes || *bytes < 0) return broken();
  return Answer{Answer::Kind::Bytes, static_cast<uint64_t>(*bytes)};
}

}  // namespace cpprun::snapshot_protocol

// Headers have a fixed size, so that one gather exchanges them without exchanging lengths first.
#include "cpprun/dist/objects/object_header.hpp"

#include "common/hash.hpp"
#include "cpprun/dist/bytes.hpp"

namespace cpprun::dist {
namespace {

constexpr std::string_view kMagic = "cpprunO1";
constexpr size_t kTypeShown = 150;

std::string shown(const ObjectHeader& header, bool counts_matter) {
  std::string text = header.call + " of " + header.type;
  if (header.root >= 0) text += ", root " + std::to_string(header.root);
  if (counts_matter) text += ", " + std::to_string(header.count) + " object(s)";
  return text;
}

bool is_same(const ObjectHeader& a, const ObjectHeader& b, bool counts_matter) {
  return a.call == b.call && a.type == b.type && a.hash == b.hash && a.root == b.root &&
         (!counts_matter || a.count == b.count);
}

ObjectHeader of_rank(const std::string& where, int rank, const std::string& packed) {
  try {
    return ObjectHeader::unpacked(packed);
  } catch (const DistMismatchError& error) {
    throw DistMismatchError(where + ": rank " + std::to_string(rank) +
                            " sent no header of an object: " + error.what());
  }
}

}  // namespace

std::string ObjectHeader::packed() const {
  ByteWriter to;
  to.raw(kMagic.data(), kMagic.size());
  to.number(hash);
  to.number(root);
  to.number(count);
  to.number(bytes);
  to.text(call);
  to.text(type);
  std::string all = to.take();
  all.resize(kObjectHeaderBytes, '\0');
  return all;
}

ObjectHeader ObjectHeader::unpacked(std::string_view packed) {
  ByteReader from(packed);
  if (from.raw(kMagic.size()) != kMagic) from.bad("another call or another version of the SDK");
  ObjectHeader header;
  header.hash = from.number<uint64_t>();
  header.root = from.number<int64_t>();
  header.count = from.number<uint64_t>();
  header.bytes = from.number<uint64_t>();
  header.call = from.text();
  header.type = from.text();
  if (header.bytes > kObjectBytesMax)
    from.bad("announces " + std::to_string(header.bytes) + " bytes");
  return header;
}

ObjectHeader object_header(const Call& call, std::string_view type, int64_t root, uint64_t count,
                           uint64_t bytes) {
  if (bytes > kObjectBytesMax) {
    call.refuse("the object takes " + std::to_string(bytes) + " bytes, the limit is " +
                std::to_string(kObjectBytesMax));
  }
  return {call.name(), std::string(type.substr(0, kTypeShown)), fnv1a(type), root, count, bytes};
}

std::vector<ObjectHeader> agreed(const std::string& where, const std::vector<int>& ranks,
                                 const std::vector<std::string>& packed, bool counts_matter) {
  std::vector<ObjectHeader> headers;
  for (size_t i = 0; i < packed.size(); ++i) headers.push_back(of_rank(where, ranks[i], packed[i]));
  for (size_t i = 1; i < headers.size(); ++i) {
    if (is_same(headers[0], headers[i], counts_matter)) continue;
    throw DistMismatchError(where + ": ranks disagree: rank " + std::to_string(ranks[0]) + ": " +
                            shown(headers[0], counts_matter) + "; rank " +
                            std::to_string(ranks[i]) + ": " + shown(headers[i], counts_matter));
  }
  return headers;
}

}  // namespace cpprun::dist

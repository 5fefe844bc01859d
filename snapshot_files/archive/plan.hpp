// Plan: where each byte of a tensor file (a zip file as torch.save writes it) will lie, computed
// from the names and sizes of its storages alone. Ranks that know the same list compute the same
// plan, so each can write its storages into the one file, in any order.
//
// Layout: first the storages of kBigStorage bytes and more, each in whole blocks of its own (so
// that it can be written past the page cache, and no two writers touch one block); then the small
// ones, aligned to 64 bytes as torch does; then the tail: data.pkl, byteorder, version and the
// central directory, which the finishing writer makes. Gaps are zeros. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/archive/bytes.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::archive {

inline constexpr uint64_t kBlock = 4096;
inline constexpr uint64_t kBigStorage = 64 * 1024;

struct StorageSize {
  std::string name;  // as in TensorRef::storage; becomes the record data/<name>
  uint64_t bytes = 0;
  bool operator==(const StorageSize&) const = default;
};

// Every storage that the tensors of `value` name, in order of first mention. Two tensors of one
// storage: the larger size counts.
std::vector<StorageSize> storages_of(const pickle::Value& value);

// Where one storage lies.
struct Place {
  std::string name;
  uint64_t header_at = 0, data_at = 0, bytes = 0;
  bool is_big() const { return bytes >= kBigStorage; }
};

class Plan {
 public:
  // Names are distinct and no longer than kNameMax bytes (a check).
  explicit Plan(const std::vector<StorageSize>& storages);
  static constexpr size_t kNameMax = 255;

  // In the order of the file: big ones first, else as they were given.
  const std::vector<Place>& places() const { return places_; }
  // Null for a name that the plan does not have.
  const Place* find(std::string_view name) const;
  // Bytes before the tail.
  uint64_t tail_at() const { return tail_at_; }

  // What goes to place.header_at once the crc32 of the whole storage is known; ends at data_at.
  std::string header(const Place& place, uint32_t crc32) const;
  // What goes to tail_at(), after which the file ends. `crc32s` go with places().
  std::string tail(std::string_view pickle, std::span<const uint32_t> crc32s) const;
  // crc32 of the whole file, from what is known without reading it.
  uint32_t file_crc32(std::span<const uint32_t> crc32s, std::string_view tail) const;

 private:
  std::vector<Place> places_;
  std::map<std::string, size_t, std::less<>> by_name_;
  uint64_t tail_at_ = 0;
};

// Bytes to write; who has gone through them already says their crc32.
struct Content {
  Content() = default;
  Content(ConstBytes given, std::optional<uint32_t> known = {}) : bytes(given), crc32(known) {}
  ConstBytes bytes;
  std::optional<uint32_t> crc32;
};

// Writes `part` of a storage, which begins `from` bytes into it, and returns the crc32 of the part.
// Parts of a big storage begin at multiples of kBlock (a check); a small one is written at once.
// Crc32s of parts are joined by crc32_combine.
Result<uint32_t> write_part(Output& output, const Place& place, uint64_t from, const Content& part);

struct Written {
  uint64_t bytes = 0;  // of the file
  uint32_t crc32 = 0;
};
// The finishing writer's part, after all storages: their headers and the tail.
Result<Written> write_rest(Output& output, const Plan& plan, const pickle::Value& value,
                           std::span<const uint32_t> crc32s);

// A whole file by one writer. `content_of` gives each storage's bytes, or its Content, exactly as
// many as storages_of says.
template <class ContentOf>
Result<Written> write_file(Output& output, const pickle::Value& value, ContentOf content_of) {
  const Plan plan(storages_of(value));
  std::vector<uint32_t> crc32s;
  for (const Place& place : plan.places()) {
    Result<uint32_t> crc = write_part(output, place, 0, content_of(place.name));
    if (!crc) return crc.error();
    crc32s.push_back(*crc);
  }
  return write_rest(output, plan, value, crc32s);
}

}  // namespace cpprun::archive

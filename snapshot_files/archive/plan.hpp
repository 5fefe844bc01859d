// Plan: the layout of a tensor file (a zip file in torch.save's format), computed from the names
// and sizes of its storages alone. Ranks with the same list compute the same plan, so each of them
// can write its storages into the shared file, in any order.
//
// Layout: first the storages of kBigStorage bytes and more, each in whole blocks of its own (so
// that writes can bypass the page cache and no two writers share a block); then the small ones,
// aligned to 64 bytes as in torch; then the tail, which the finishing writer writes: data.pkl,
// byteorder, version and the central directory. Gaps are zeros. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

// Every storage that the tensors of `value` refer to, in order of first mention. If tensors
// disagree on a storage's size, the largest counts.
std::vector<StorageSize> storages_of(const pickle::Value& value);

// The position of one storage in the file.
struct Place {
  std::string name;
  uint64_t header_at = 0, data_at = 0, bytes = 0;
  bool is_big() const { return bytes >= kBigStorage; }
};

class Plan {
 public:
  // Names are distinct and at most kNameMax bytes long (checked).
  explicit Plan(const std::vector<StorageSize>& storages);
  static constexpr size_t kNameMax = 255;

  // In file order: big storages first, otherwise as given.
  const std::vector<Place>& places() const { return places_; }
  // Null for an unknown name.
  const Place* find(std::string_view name) const;
  // Bytes before the tail.
  uint64_t tail_at() const { return tail_at_; }

  // The bytes for place.header_at, up to data_at; needs the crc32 of the whole storage.
  std::string header(const Place& place, uint32_t crc32) const;
  // The bytes for tail_at(), up to the end of the file. `crc32s` are in the order of places().
  std::string tail(std::string_view pickle, std::span<const uint32_t> crc32s) const;
  // crc32 of the whole file, computed without reading it.
  uint32_t file_crc32(std::span<const uint32_t> crc32s, std::string_view tail) const;

 private:
  std::vector<Place> places_;
  std::map<std::string, size_t, std::less<>> by_name_;
  uint64_t tail_at_ = 0;
};

// Bytes to write, with their crc32 if the caller knows it.
struct Content {
  Content() = default;
  Content(ConstBytes given, std::optional<uint32_t> known = {}) : bytes(given), crc32(known) {}
  ConstBytes bytes;
  std::optional<uint32_t> crc32;
};

// Writes `part` of a storage at offset `from` in it, and returns the part's crc32. Parts of a big
// storage begin at multiples of kBlock (checked); a small storage is one part. Join the crc32s of
// parts with crc32_combine.
Result<uint32_t> write_part(Output& output, const Place& place, uint64_t from, const Content& part);

// A part of a storage, from the offset `from` in it on.
struct Part {
  const Place* place = nullptr;
  uint64_t from = 0;
  Content content;
};
// Writes parts as write_part() does, with the headers of the storages that they have as a whole, so
// that neighbours go to the file together. Returns the crc32s of the parts.
Result<std::vector<uint32_t>> write_parts(Output& output, const Plan& plan,
                                          std::span<const Part> parts);

struct Written {
  uint64_t bytes = 0;  // of the file
  uint32_t crc32 = 0;
};
// Called once by the finishing writer, after all storages: writes the tail, and the headers of the
// storages in `headers_of` (null: of all), which write_parts() has not written.
Result<Written> write_rest(Output& output, const Plan& plan, const pickle::Value& value,
                           std::span<const uint32_t> crc32s,
                           const std::set<std::string_view>* headers_of = nullptr);

// Writes a whole file in one call of write_all(), but for big storages without a known crc32.
// `storages` has each place of the plan as one part.
Result<Written> write_whole(Output& output, const Plan& plan, const pickle::Value& value,
                            std::span<const Part> storages);

// The same of the storages of `value`. `content_of` returns each one's bytes, or its Content, of
// exactly the size that storages_of gives. All of them stay valid until write_file() returns.
template <class ContentOf>
Result<Written> write_file(Output& output, const pickle::Value& value, ContentOf content_of) {
  const Plan plan(storages_of(value));
  std::vector<Part> storages;
  for (const Place& place : plan.places()) storages.push_back({&place, 0, content_of(place.name)});
  return write_whole(output, plan, value, storages);
}

}  // namespace cpprun::archive

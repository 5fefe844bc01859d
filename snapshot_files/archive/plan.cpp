#include "snapshot_files/archive/plan.hpp"

#include <algorithm>
#include <array>
#include <deque>

#include "common/check.hpp"
#include "common/limits/snapshots.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/tree.hpp"
#include "snapshot_files/archive/zip_format.hpp"
#include "snapshot_files/pickle/dtype.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::archive {
namespace {

constexpr std::string_view kFolder = "archive/";  // any name works; readers take the first one
constexpr uint64_t kAlignment = 64;               // of small records, as in torch
constexpr size_t kStretch = 4 << 20;              // fits the cache: crc32 first, then the write

uint64_t align_up(uint64_t at, uint64_t to) { return (at + to - 1) / to * to; }

std::string full_name(std::string_view record) { return std::string(kFolder).append(record); }
std::string storage_record(std::string_view storage) { return "data/" + std::string(storage); }

bool is_long(uint64_t number) { return number >= zip::kIn64; }
size_t local_extra_bytes(uint64_t bytes) { return is_long(bytes) ? zip::kExtraBytes + 16 : 0; }
// The minimum distance between a header's offset and its data.
uint64_t header_bytes(std::string_view record, uint64_t bytes) {
  return zip::kLocalBytes + kFolder.size() + record.size() + local_extra_bytes(bytes) +
         zip::kExtraBytes;
}
// `alignment`: of the data.
Place place_at(uint64_t header_at, std::string_view record, uint64_t bytes, uint64_t alignment) {
  return {"", header_at, align_up(header_at + header_bytes(record, bytes), alignment), bytes};
}

// Version, flags, method and time, which are the same in both headers.
void put_kind(zip::Bytes& out, bool is_zip64) {
  out.u16(is_zip64 ? zip::kVersion64 : zip::kVersion).u16(zip::kUtf8Names).u16(zip::kStored);
  out.u16(0).u16(zip::kDate);
}
uint32_t low(uint64_t number) {
  return is_long(number) ? zip::kIn64 : static_cast<uint32_t>(number);
}

std::string local_header(std::string_view record, const Place& place, uint32_t crc32) {
  const std::string name = full_name(record);
  const uint64_t all = place.data_at - place.header_at;
  const auto extra = static_cast<uint16_t>(all - zip::kLocalBytes - name.size());
  zip::Bytes out;
  out.u32(zip::kLocal);
  put_kind(out, is_long(place.bytes));
  out.u32(crc32).u32(low(place.bytes)).u32(low(place.bytes));
  out.u16(static_cast<uint16_t>(name.size())).u16(extra).text(name);
  if (is_long(place.bytes)) out.u16(zip::kZip64Field).u16(16).u64(place.bytes).u64(place.bytes);
  const size_t padding = all - out.size() - zip::kExtraBytes;
  out.u16(zip::kPaddingField).u16(static_cast<uint16_t>(padding)).zeros(padding);
  return out.take();
}

void put_central(zip::Bytes& out, std::string_view record, const Place& place, uint32_t crc32) {
  const std::string name = full_name(record);
  zip::Bytes extra;
  if (is_long(place.bytes)) extra.u64(place.bytes).u64(place.bytes);
  if (is_long(place.header_at)) extra.u64(place.header_at);
  const bool is_zip64 = extra.size() != 0;
  const size_t extra_bytes = is_zip64 ? zip::kExtraBytes + extra.size() : 0;
  out.u32(zip::kCentral).u16(zip::kVersion64);
  put_kind(out, is_zip64);
  out.u32(crc32).u32(low(place.bytes)).u32(low(place.bytes));
  out.u16(static_cast<uint16_t>(name.size())).u16(static_cast<uint16_t>(extra_bytes));
  out.u16(0).u16(0).u16(0).u32(0).u32(low(place.header_at)).text(name);
  if (is_zip64) {
    out.u16(zip::kZip64Field).u16(static_cast<uint16_t>(extra.size())).text(extra.take());
  }
}

void put_end(zip::Bytes& out, uint64_t records, uint64_t directory_at, uint64_t directory_bytes) {
  if (records >= zip::kCountIn64 || is_long(directory_at) || is_long(directory_bytes)) {
    const uint64_t end64_at = directory_at + directory_bytes;
    out.u32(zip::kEnd64).u64(zip::kEnd64Bytes - 12).u16(zip::kVersion64).u16(zip::kVersion64);
    out.u32(0).u32(0).u64(records).u64(records).u64(directory_bytes).u64(directory_at);
    out.u32(zip::kLocator64).u32(0).u64(end64_at).u32(1);
  }
  const auto count = static_cast<uint16_t>(std::min<uint64_t>(records, zip::kCountIn64));
  out.u32(zip::kEnd).u16(0).u16(0).u16(count).u16(count);
  out.u32(low(directory_bytes)).u32(low(directory_at)).u16(0);
}

uint32_t crc32_of_zeros(uint64_t count) {
  static constexpr std::array<std::byte, kBlock> kZeroBlock{};
  CPPRUN_CHECK(count <= kZeroBlock.size());
  return crc32(ConstBytes(kZeroBlock).first(count));
}

}  // namespace

std::vector<StorageSize> storages_of(const pickle::Value& value) {
  std::vector<StorageSize> all;
  std::map<std::string, size_t, std::less<>> known;
  for_each_tensor(value, [&](const pickle::TensorRef& tensor) {
    const pickle::DtypeInfo* dtype = pickle::find_dtype(tensor.dtype);
    CPPRUN_CHECK(dtype != nullptr && tensor.storage_numel >= 0);
    const auto bytes = static_cast<uint64_t>(tensor.storage_numel * dtype->bytes);
    const auto [found, is_new] = known.try_emplace(tensor.storage, all.size());
    if (is_new) all.push_back({tensor.storage, 0});
    all[found->second].bytes = std::max(all[found->second].bytes, bytes);
  });
  return all;
}

Plan::Plan(const std::vector<StorageSize>& storages) {
  CPPRUN_CHECK(storages.size() <= limits::kArchiveRecords - 3);
  uint64_t at = 0;
  const auto add = [&](const StorageSize& storage, bool is_big) {
    CPPRUN_CHECK(storage.name.size() <= kNameMax);
    CPPRUN_CHECK(by_name_.try_emplace(storage.name, places_.size()).second);
    const std::string record = storage_record(storage.name);
    places_.push_back(is_big ? place_at(align_up(at, kBlock), record, storage.bytes, kBlock)
                             : place_at(at, record, storage.bytes, kAlignment));
    places_.back().name = storage.name;
    at = places_.back().data_at + storage.bytes;
  };
  for (const bool is_big : {true, false}) {
    for (const StorageSize& storage : storages) {
      if ((storage.bytes >= kBigStorage) == is_big) add(storage, is_big);
    }
    if (is_big) at = align_up(at, kBlock);
  }
  tail_at_ = at;
}

const Place* Plan::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &places_[found->second];
}

std::string Plan::header(const Place& place, uint32_t crc32) const {
  return local_header(storage_record(place.name), place, crc32);
}

std::string Plan::tail(std::string_view pickle, std::span<const uint32_t> crc32s) const {
  CPPRUN_CHECK(crc32s.size() == places_.size() && pickle.size() <= limits::kArchivePickleBytes);
  zip::Bytes out, directory;
  for (size_t i = 0; i < places_.size(); ++i) {
    put_central(directory, storage_record(places_[i].name), places_[i], crc32s[i]);
  }
  const std::array<std::pair<std::string_view, std::string_view>, 3> records{
      {{"data.pkl", pickle}, {"byteorder", "little"}, {"version", "3\n"}}};
  for (const auto& [name, content] : records) {
    const Place place = place_at(tail_at_ + out.size(), name, content.size(), kAlignment);
    const uint32_t crc = crc32(bytes_of(content));
    out.text(local_header(name, place, crc)).text(content);
    put_central(directory, name, place, crc);
  }
  const uint64_t directory_at = tail_at_ + out.size();
  const uint64_t directory_bytes = directory.size();
  out.text(directory.take());
  put_end(out, places_.size() + records.size(), directory_at, directory_bytes);
  return out.take();
}

uint32_t Plan::file_crc32(std::span<const uint32_t> crc32s, std::string_view tail) const {
  CPPRUN_CHECK(crc32s.size() == places_.size());
  uint32_t whole = 0;
  uint64_t at = 0;
  const auto add = [&](uint32_t crc, uint64_t bytes) {
    whole = crc32_combine(whole, crc, bytes);
    at += bytes;
  };
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    add(crc32_of_zeros(place.header_at - at), place.header_at - at);
    add(crc32(bytes_of(header(place, crc32s[i]))), place.data_at - place.header_at);
    add(crc32s[i], place.bytes);
  }
  add(crc32_of_zeros(tail_at_ - at), tail_at_ - at);
  add(crc32(bytes_of(tail)), tail.size());
  return whole;
}

namespace {

void check_part(const Place& place, uint64_t from, ConstBytes bytes) {
  CPPRUN_CHECK(from <= place.bytes && bytes.size() <= place.bytes - from);
  CPPRUN_CHECK(place.is_big() ? from % kBlock == 0 : from == 0 && bytes.size() == place.bytes);
}

// What goes to a file in one call.
class Pieces {
 public:
  // The caller keeps `bytes`.
  void add(uint64_t offset, ConstBytes bytes) { all_.push_back({offset, bytes}); }
  void add(uint64_t offset, std::string text) {
    texts_.push_back(std::move(text));
    add(offset, bytes_of(texts_.back()));
  }
  Status write(Output& output) {
    std::ranges::sort(all_, {}, &Piece::offset);
    return output.write_all(all_);
  }

 private:
  std::deque<std::string> texts_;  // keeps the addresses of its elements
  std::vector<Piece> all_;
};

// Adds the parts, and the headers of the storages that they have as a whole. Writes big parts
// without a known crc32 at once: they are in the processor's cache only then. Returns the crc32s.
Result<std::vector<uint32_t>> add_parts(Pieces& pieces, Output& output, const Plan& plan,
                                        std::span<const Part> parts) {
  std::vector<uint32_t> crc32s;
  for (const auto& [place, from, content] : parts) {
    check_part(*place, from, content.bytes);
    if (content.crc32 || !place->is_big()) {
      crc32s.push_back(content.crc32 ? *content.crc32 : crc32(content.bytes));
      pieces.add(place->data_at + from, content.bytes);
    } else {
      const Result<uint32_t> crc = write_part(output, *place, from, content);
      if (!crc) return crc.error();
      crc32s.push_back(*crc);
    }
    if (content.bytes.size() != place->bytes) continue;
    pieces.add(place->header_at, plan.header(*place, crc32s.back()));
  }
  return crc32s;
}

}  // namespace

Result<uint32_t> write_part(Output& output, const Place& place, uint64_t from,
                            const Content& part) {
  const ConstBytes bytes = part.bytes;
  check_part(place, from, bytes);
  if (part.crc32) {
    const Status wrote = output.write_at(place.data_at + from, bytes);
    return wrote ? Result<uint32_t>(*part.crc32) : wrote.error();
  }
  uint32_t crc = 0;
  for (size_t done = 0; done < bytes.size();) {
    const ConstBytes stretch = bytes.subspan(done, std::min(kStretch, bytes.size() - done));
    crc = crc32(stretch, crc);
    if (Status wrote = output.write_at(place.data_at + from + done, stretch); !wrote.ok()) {
      return wrote.error();
    }
    done += stretch.size();
  }
  return crc;
}

Result<std::vector<uint32_t>> write_parts(Output& output, const Plan& plan,
                                          std::span<const Part> parts) {
  Pieces pieces;
  auto crc32s = add_parts(pieces, output, plan, parts);
  if (!crc32s) return crc32s;
  if (const Status wrote = pieces.write(output); !wrote) return wrote.error();
  return crc32s;
}

Result<Written> write_rest(Output& output, const Plan& plan, const pickle::Value& value,
                           std::span<const uint32_t> crc32s,
                           const std::set<std::string_view>* headers_of) {
  Pieces pieces;
  for (size_t i = 0; i < plan.places().size(); ++i) {
    const Place& place = plan.places()[i];
    if (headers_of != nullptr && !headers_of->contains(place.name)) continue;
    pieces.add(place.header_at, plan.header(place, crc32s[i]));
  }
  const std::string tail = plan.tail(pickle::write(value), crc32s);
  pieces.add(plan.tail_at(), bytes_of(tail));
  if (const Status wrote = pieces.write(output); !wrote) return wrote.error();
  return Written{plan.tail_at() + tail.size(), plan.file_crc32(crc32s, tail)};
}

Result<Written> write_whole(Output& output, const Plan& plan, const pickle::Value& value,
                            std::span<const Part> storages) {
  Pieces pieces;
  const auto crc32s = add_parts(pieces, output, plan, storages);
  if (!crc32s) return crc32s.error();
  const std::string tail = plan.tail(pickle::write(value), *crc32s);
  pieces.add(plan.tail_at(), bytes_of(tail));
  if (const Status wrote = pieces.write(output); !wrote) return wrote.error();
  return Written{plan.tail_at() + tail.size(), plan.file_crc32(*crc32s, tail)};
}

}  // namespace cpprun::archive

#include "snapshot_files/archive/tensor_file.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/limits/snapshots.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/tree.hpp"
#include "snapshot_files/pickle/dtype.hpp"

namespace cpprun::archive {
namespace {

Error wrong(const Source& source, const std::string& why) {
  return Error{ErrorKind::Protocol, source.name() + " can't be loaded: " + why};
}
Error damaged(const Source& source, std::string_view record) {
  return wrong(source, "record '" + std::string(record) +
                           "' is not what was written (its crc32 differs); take an older snapshot");
}

// Reads a record and verifies its crc32; `into` has the record's size.
Status read_record(const Source& source, std::string_view name, const Record& record, Bytes into) {
  Result<uint64_t> at = data_place(source, record);
  if (!at) return at.error();
  uint32_t crc = 0;
  for (size_t done = 0; done < into.size();) {
    const Bytes stretch = into.subspan(done, std::min(kCheckedPartBytes, into.size() - done));
    if (Status read = source.read_at(*at + done, stretch); !read.ok()) return read;
    crc = crc32(stretch, crc);
    done += stretch.size();
  }
  return crc == record.crc32 ? Status() : damaged(source, name);
}

Result<std::string> read_text(const Source& source, const ZipDirectory& directory,
                              std::string_view name, size_t most) {
  const Record* record = directory.find(name);
  if (record == nullptr) return wrong(source, "it has no record '" + std::string(name) + "'");
  if (record->bytes > most) {
    return wrong(source, "record '" + std::string(name) + "' has more than " +
                             std::to_string(most) + " bytes");
  }
  std::string text(record->bytes, '\0');
  Status read = read_record(source, name, *record, writable_bytes_of(text));
  if (!read) return read.error();
  return text;
}

Status check_byte_order(const Source& source, const ZipDirectory& directory) {
  if (directory.find("byteorder") == nullptr) return {};  // torch before 2.1 has no such record
  Result<std::string> order = read_text(source, directory, "byteorder", 16);
  if (!order) return order.error();
  if (*order == "little") return {};
  return wrong(source, "it was written on a big-endian machine");
}

}  // namespace

Result<TensorFile> TensorFile::open(std::shared_ptr<const Source> source,
                                    const pickle::ReadLimits& limits) {
  Result<ZipDirectory> directory = ZipDirectory::read(*source);
  if (!directory) return directory.error();
  Result<std::string> text =
      read_text(*source, *directory, "data.pkl", limits::kArchivePickleBytes);
  if (!text) return text.error();
  if (Status order = check_byte_order(*source, *directory); !order.ok()) return order.error();
  Result<pickle::Value> value = pickle::read(*text, limits);
  if (!value) return wrong(*source, value.error().text);
  TensorFile made(std::move(source), std::move(*directory));
  made.value_ = std::move(*value);
  if (Status checked = made.check_storages(); !checked.ok()) return checked.error();
  return made;
}

Status TensorFile::check_storages() const {
  std::string missing;
  for_each_tensor(value_, [&](const pickle::TensorRef& tensor) {
    const Record* record = record_of(tensor.storage);
    const auto element = static_cast<uint64_t>(pickle::find_dtype(tensor.dtype)->bytes);
    if (record == nullptr ||
        record->bytes / element < static_cast<uint64_t>(tensor.storage_numel)) {
      missing = tensor.storage;
    }
  });
  if (missing.empty()) return {};
  return wrong(*source_, "storage '" + missing + "' is missing or too short");
}

const Record* TensorFile::record_of(std::string_view storage) const {
  return directory_.find("data/" + std::string(storage));
}

uint64_t TensorFile::storage_bytes(std::string_view storage) const {
  const Record* record = record_of(storage);
  return record == nullptr ? 0 : record->bytes;
}

uint32_t TensorFile::storage_crc32(std::string_view storage) const {
  const Record* record = record_of(storage);
  return record == nullptr ? 0 : record->crc32;
}

Status TensorFile::read_storage(std::string_view storage, Bytes into) const {
  const Record* record = record_of(storage);
  if (record == nullptr) {
    return wrong(*source_, "it has no storage '" + std::string(storage) + "'");
  }
  CPPRUN_CHECK(into.size() == record->bytes);
  return read_record(*source_, "data/" + std::string(storage), *record, into);
}

Status TensorFile::read_part(std::string_view storage, uint64_t from, Bytes into) const {
  const Record* record = record_of(storage);
  if (record == nullptr) {
    return wrong(*source_, "it has no storage '" + std::string(storage) + "'");
  }
  CPPRUN_CHECK(from <= record->bytes && into.size() <= record->bytes - from);
  Result<uint64_t> at = data_place(*source_, *record);
  if (!at) return at.error();
  return source_->read_at(*at + from, into);
}

Status TensorFile::verify() const {
  for (const auto& [name, record] : directory_.records()) {
    Result<uint64_t> at = data_place(*source_, record);
    if (!at) return at.error();
    const Result<uint32_t> crc = crc32_of(*source_, *at, record.bytes);
    if (!crc) return crc.error();
    if (*crc != record.crc32) return damaged(*source_, name);
  }
  return {};
}

}  // namespace cpprun::archive

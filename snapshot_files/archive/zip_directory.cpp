#include "snapshot_files/archive/zip_directory.hpp"

#include <algorithm>
#include <vector>

#include "common/limits/snapshots.hpp"
#include "snapshot_files/archive/zip_format.hpp"

namespace cpprun::archive {
namespace {

Error wrong_directory(const Source& source, const std::string& why) {
  return Error{ErrorKind::Protocol, source.name() + " is no whole tensor file: " + why};
}

// The position of the directory.
struct Extent {
  uint64_t at = 0, bytes = 0, records = 0;
  uint64_t end = 0;  // end of the part of the file that holds records
};

// Finds the last end record whose comment extends exactly to the end of the file.
size_t find_end(std::string_view last) {
  for (size_t at = last.size() - zip::kEndBytes + 1; at-- > 0;) {
    const bool is_mark = zip::get<uint32_t>(last, at) == zip::kEnd;
    const size_t comment = zip::get<uint16_t>(last, at + 20);
    if (is_mark && at + zip::kEndBytes + comment == last.size()) return at;
  }
  return std::string_view::npos;
}

// Replaces the values of the end record by those of the zip64 one, if there is one.
Status read_end64(const Source& source, uint64_t end_at, Extent& extent) {
  if (end_at < zip::kLocator64Bytes + zip::kEnd64Bytes) return {};
  const uint64_t locator_at = end_at - zip::kLocator64Bytes;
  Result<std::string> locator = source.read_text(locator_at, zip::kLocator64Bytes);
  if (!locator) return locator.error();
  if (zip::get<uint32_t>(*locator, 0) != zip::kLocator64) return {};
  const auto at = zip::get<uint64_t>(*locator, 8);
  if (at > locator_at - zip::kEnd64Bytes)
    return wrong_directory(source, "its end points beyond itself");
  Result<std::string> end = source.read_text(at, zip::kEnd64Bytes);
  if (!end) return end.error();
  if (zip::get<uint32_t>(*end, 0) != zip::kEnd64)
    return wrong_directory(source, "its long end is none");
  extent = {zip::get<uint64_t>(*end, 48), zip::get<uint64_t>(*end, 40),
            zip::get<uint64_t>(*end, 32), at};
  return {};
}

Result<Extent> find_directory(const Source& source) {
  Result<uint64_t> size = source.size();
  if (!size) return size.error();
  if (*size < zip::kEndBytes)
    return wrong_directory(source, "it has " + std::to_string(*size) + " bytes");
  const auto looked_at =
      static_cast<size_t>(std::min<uint64_t>(*size, zip::kEndBytes + zip::kCommentMax));
  Result<std::string> last = source.read_text(*size - looked_at, looked_at);
  if (!last) return last.error();
  const size_t at = find_end(*last);
  if (at == std::string_view::npos) {
    return wrong_directory(source,
                           "it does not end as a zip file does, so it was cut short or is another "
                           "kind of file (torch.save before 1.6 wrote one)");
  }
  const uint64_t end_at = *size - looked_at + at;
  Extent extent{zip::get<uint32_t>(*last, at + 16), zip::get<uint32_t>(*last, at + 12),
                zip::get<uint16_t>(*last, at + 10), end_at};
  if (Status read = read_end64(source, end_at, extent); !read.ok()) return read.error();
  if (extent.at > extent.end || extent.bytes > extent.end - extent.at) {
    return wrong_directory(source, "its directory lies beyond its end");
  }
  if (extent.records > limits::kArchiveRecords || extent.bytes > limits::kArchiveDirectoryBytes) {
    return wrong_directory(source, "its directory is larger than any that torch.save writes");
  }
  return extent;
}

struct Entry {
  std::string name;
  Record record;
  size_t name_bytes = 0;  // with the folder
};

// Reads the zip64 field: it has the 64-bit values of exactly those fields whose 32-bit value is the
// marker, in a fixed order.
bool read_long_numbers(std::string_view extra, bool wants_size, uint64_t& stored, Record& record) {
  while (extra.size() >= zip::kExtraBytes) {
    const auto id = zip::get<uint16_t>(extra, 0);
    const size_t bytes = zip::get<uint16_t>(extra, 2);
    if (bytes > extra.size() - zip::kExtraBytes) return false;
    if (id == zip::kZip64Field) {
      const std::string_view field = extra.substr(zip::kExtraBytes, bytes);
      size_t at = 0;
      const auto next = [&](uint64_t& number, bool is_wanted) {
        if (!is_wanted) return true;
        if (at + 8 > field.size()) return false;
        number = zip::get<uint64_t>(field, at);
        at += 8;
        return true;
      };
      return next(record.bytes, wants_size) && next(stored, stored == zip::kIn64) &&
             next(record.header_at, record.header_at == zip::kIn64);
    }
    extra.remove_prefix(zip::kExtraBytes + bytes);
  }
  return !wants_size && stored != zip::kIn64 && record.header_at != zip::kIn64;
}

// Takes one entry from the front of `rest`. The error's text gives the reason of the refusal.
Result<Entry> take_entry(std::string_view& rest) {
  const auto refused = [](const char* why) { return Error{ErrorKind::Protocol, why}; };
  if (rest.size() < zip::kCentralBytes || zip::get<uint32_t>(rest, 0) != zip::kCentral) {
    return refused("its directory is broken");
  }
  const size_t name_bytes = zip::get<uint16_t>(rest, 28);
  const size_t extra_bytes = zip::get<uint16_t>(rest, 30);
  const size_t all = zip::kCentralBytes + name_bytes + extra_bytes + zip::get<uint16_t>(rest, 32);
  if (all > rest.size()) return refused("its directory is broken");
  if ((zip::get<uint16_t>(rest, 8) & zip::kEncrypted) != 0) return refused("it is encrypted");
  if (zip::get<uint16_t>(rest, 10) != zip::kStored) {
    return refused("it is compressed, which torch.save never does");
  }
  Entry entry;
  entry.record.crc32 = zip::get<uint32_t>(rest, 16);
  entry.record.bytes = zip::get<uint32_t>(rest, 24);
  entry.record.header_at = zip::get<uint32_t>(rest, 42);
  uint64_t stored = zip::get<uint32_t>(rest, 20);
  const std::string_view extra = rest.substr(zip::kCentralBytes + name_bytes, extra_bytes);
  if (!read_long_numbers(extra, entry.record.bytes == zip::kIn64, stored, entry.record) ||
      stored != entry.record.bytes) {
    return refused("the sizes in its directory contradict each other");
  }
  const std::string_view name = rest.substr(zip::kCentralBytes, name_bytes);
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return refused("a record lies in no folder");
  entry.name = name.substr(slash + 1);
  entry.name_bytes = name_bytes;
  rest.remove_prefix(all);
  return entry;
}

// Each record ends before the next one begins.
bool are_apart(std::vector<Entry>& entries, uint64_t directory_at) {
  std::ranges::sort(entries, {}, [](const Entry& entry) { return entry.record.header_at; });
  for (size_t i = 0; i < entries.size(); ++i) {
    Record& record = entries[i].record;
    const bool is_last = i + 1 == entries.size();
    record.ends_before = is_last ? directory_at : entries[i + 1].record.header_at;
    const uint64_t header = zip::kLocalBytes + entries[i].name_bytes;
    if (record.header_at > record.ends_before || header > record.ends_before - record.header_at ||
        record.bytes > record.ends_before - record.header_at - header) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<ZipDirectory> ZipDirectory::read(const Source& source) {
  Result<Extent> extent = find_directory(source);
  if (!extent) return extent.error();
  Result<std::string> text = source.read_text(extent->at, extent->bytes);
  if (!text) return text.error();
  std::string_view rest = *text;
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < extent->records; ++i) {
    Result<Entry> entry = take_entry(rest);
    if (!entry) return wrong_directory(source, entry.error().text);
    entries.push_back(std::move(*entry));
  }
  if (!are_apart(entries, extent->at)) return wrong_directory(source, "its records overlap");
  ZipDirectory made;
  for (Entry& entry : entries) {
    if (!made.records_.emplace(entry.name, entry.record).second) {
      return wrong_directory(source, "it has two records '" + entry.name + "'");
    }
  }
  return made;
}

const Record* ZipDirectory::find(std::string_view name) const {
  const auto found = records_.find(name);
  return found == records_.end() ? nullptr : &found->second;
}

Result<uint64_t> data_place(const Source& source, const Record& record) {
  Result<std::string> header = source.read_text(record.header_at, zip::kLocalBytes);
  if (!header) return header.error();
  const uint64_t at = record.header_at + zip::kLocalBytes + zip::get<uint16_t>(*header, 26) +
                      zip::get<uint16_t>(*header, 28);
  if (zip::get<uint32_t>(*header, 0) != zip::kLocal || at > record.ends_before ||
      record.bytes > record.ends_before - at) {
    return wrong_directory(source, "a record's own header contradicts the directory");
  }
  return at;
}

}  // namespace cpprun::archive

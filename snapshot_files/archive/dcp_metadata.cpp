#include "snapshot_files/archive/dcp_metadata.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/limits/snapshots.hpp"
#include "common/text.hpp"
#include "snapshot_files/archive/plain_name.hpp"
#include "snapshot_files/pickle/dtype.hpp"

namespace cpprun::archive {
namespace {

using pickle::Dict;
using pickle::Value;
using Numbers = std::vector<int64_t>;

Error wrong(const std::string& what) { return {ErrorKind::Protocol, what}; }
Error wrong_entry(const std::string& name, const std::string& what) {
  return wrong("'" + text::printable(name) + "' " + what);
}

bool is_of_class(const Value& value, std::string_view name) {
  const auto* found = value.find_as<std::string>("__class__");
  return found != nullptr && *found == name;
}

// A torch.Size. Nothing: it is something else, or has a negative number.
std::optional<Numbers> size_of(const Value* value) {
  const pickle::Values* items = value == nullptr ? nullptr : value->items();
  if (items == nullptr) return std::nullopt;
  Numbers all;
  for (const Value& item : *items) {
    const auto* number = item.get_if<int64_t>();
    if (number == nullptr || *number < 0) return std::nullopt;
    all.push_back(*number);
  }
  return all;
}

// Of a box or a shape. Nothing: it does not fit into int64_t.
std::optional<int64_t> product(const Numbers& sizes) {
  int64_t all = 1;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(all, size, &all)) return std::nullopt;
  }
  return all;
}

// TensorProperties are a tuple that begins with the dtype: of five fields in torch 2.11, in
// torch 2.15 of six, with the strides that the tensor had in memory.
const pickle::DtypeInfo* dtype_of(const Value* properties) {
  const bool are_properties = properties != nullptr && is_of_class(*properties, "TensorProperties");
  const Value* state = are_properties ? properties->find("__state__") : nullptr;
  const pickle::Values* fields = state == nullptr ? nullptr : state->items();
  const auto* dtype =
      fields == nullptr || fields->empty() ? nullptr : fields->front().get_if<pickle::Dtype>();
  return dtype == nullptr ? nullptr : pickle::find_dtype(dtype->name);
}

// The content of a MetadataIndex that identifies the entry; of an object it has no offsets.
using Index = std::pair<std::string, std::optional<Numbers>>;
using Places = std::map<Index, DcpPlace>;

Result<Index> read_index(const Value& value) {
  const auto* name = value.find_as<std::string>("fqn");
  if (!is_of_class(value, "MetadataIndex") || name == nullptr) {
    return wrong("its storage_data has a key that names no tensor");
  }
  const Value* offsets = value.find("offset");
  if (offsets == nullptr || offsets->get_if<pickle::None>() != nullptr) {
    return Index{*name, std::nullopt};
  }
  std::optional<Numbers> numbers = size_of(offsets);
  if (!numbers) return wrong_entry(*name, "has a chunk without offsets in storage_data");
  return Index{*name, std::move(numbers)};
}

Result<DcpPlace> read_place(const std::string& name, const Value& value) {
  const auto* file = value.find_as<std::string>("relative_path");
  const auto* offset = value.find_as<int64_t>("offset");
  const auto* bytes = value.find_as<int64_t>("length");
  const bool is_place = is_of_class(value, "_StorageInfo") && file != nullptr &&
                        offset != nullptr && bytes != nullptr && *offset >= 0 && *bytes >= 0;
  if (!is_place) return wrong_entry(name, "has no place in storage_data");
  if (!is_plain_name(*file)) {
    return wrong_entry(name, "is in '" + text::printable(*file) +
                                 "', which is no file of the checkpoint's folder");
  }
  if (const Value* transforms = value.find("transform_descriptors")) {
    const pickle::Values* items = transforms->items();
    const bool is_plain =
        transforms->get_if<pickle::None>() != nullptr || (items != nullptr && items->empty());
    if (!is_plain) {
      return wrong_entry(name,
                         "was written with extensions (transform_descriptors), as compression is: "
                         "only checkpoints without can be read");
    }
  }
  return DcpPlace{*file, static_cast<uint64_t>(*offset), static_cast<uint64_t>(*bytes)};
}

Result<Places> read_places(const Dict& storage_data) {
  Places places;
  for (const auto& [key, value] : storage_data.pairs) {
    Result<Index> index = read_index(key);
    if (!index) return index.error();
    Result<DcpPlace> place = read_place(index->first, value);
    if (!place) return place.error();
    const std::string name = index->first;
    if (!places.emplace(std::move(*index), std::move(*place)).second) {
      return wrong_entry(name, "has one chunk in storage_data twice");
    }
  }
  return places;
}

// The text names the error.
Result<DcpChunk> read_chunk(const Value& value, const Numbers& shape) {
  const auto offsets = size_of(value.find("offsets")), sizes = size_of(value.find("sizes"));
  if (!is_of_class(value, "ChunkStorageMetadata") || !offsets || !sizes) {
    return wrong("has a chunk without offsets and sizes");
  }
  bool is_within = offsets->size() == shape.size() && sizes->size() == shape.size();
  for (size_t i = 0; is_within && i < shape.size(); ++i) {
    is_within = (*offsets)[i] <= shape[i] && (*sizes)[i] <= shape[i] - (*offsets)[i];
  }
  if (!is_within) return wrong("has a chunk that is not within its shape");
  return DcpChunk{*offsets, *sizes};
}

// The dimensions along which a tensor is split.
std::vector<size_t> split_dimensions(const DcpTensor& tensor) {
  std::vector<size_t> all;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto is_part = [&](const DcpChunk& chunk) { return chunk.sizes[i] != tensor.shape[i]; };
    if (std::ranges::any_of(tensor.chunks, is_part)) all.push_back(i);
  }
  return all;
}

// Adds the corners of a box, and removes those that are there already.
void toggle_corners(std::set<Numbers>& corners, const std::vector<size_t>& dimensions,
                    const Numbers& offsets, const Numbers& sizes) {
  for (size_t mask = 0; mask < size_t{1} << dimensions.size(); ++mask) {
    Numbers corner;
    for (size_t i = 0; i < dimensions.size(); ++i) {
      const size_t at = dimensions[i];
      corner.push_back(offsets[at] + ((mask >> i & 1) != 0 ? sizes[at] : 0));
    }
    const auto [known, is_new] = corners.insert(std::move(corner));
    if (!is_new) corners.erase(known);
  }
}

// Whether each element is in one chunk. The corners that an odd number of chunks have determine
// which elements an odd number of chunks have. So if only the tensor's own corners are left, each
// element is in one chunk or more, and with as many elements in the chunks as in the tensor, in
// one. Unlike a comparison of each chunk with each other one this takes linear time, whatever the
// file contains. A corner takes about as much memory as a value of the pickle.
Status check_cover(const DcpTensor& tensor, int64_t numel, size_t most_corners) {
  int64_t seen = 0;
  for (const DcpChunk& chunk : tensor.chunks) {
    // A chunk is within the shape, so its product fits; the sum of many may not.
    if (__builtin_add_overflow(seen, *product(chunk.sizes), &seen)) {
      return wrong("has chunks that overlap");
    }
  }
  if (seen != numel) {
    return wrong("has " + std::to_string(numel) + " elements, but its chunks have " +
                 std::to_string(seen));
  }
  const std::vector<size_t> dimensions = split_dimensions(tensor);
  if (dimensions.size() > limits::kDcpSplitDimensions) {
    return wrong("is split along more than " + std::to_string(limits::kDcpSplitDimensions) +
                 " dimensions");
  }
  std::set<Numbers> corners;
  for (const DcpChunk& chunk : tensor.chunks) {
    toggle_corners(corners, dimensions, chunk.offsets, chunk.sizes);
    if (corners.size() > most_corners) {
      return wrong("has chunks with more corners than " + std::to_string(most_corners));
    }
  }
  if (numel > 0) {
    toggle_corners(corners, dimensions, Numbers(tensor.shape.size(), 0), tensor.shape);
  }
  return corners.empty() ? Status() : wrong("has chunks that overlap, and elements in none");
}

// So that a tensor needs no more memory than its files have bytes.
Status check_places(const DcpTensor& tensor) {
  std::vector<const DcpPlace*> places;
  for (const DcpChunk& chunk : tensor.chunks) places.push_back(&chunk.place);
  std::ranges::sort(places, {}, [](const DcpPlace* each) {
    return std::pair<std::string_view, uint64_t>(each->file, each->offset);
  });
  for (size_t i = 1; i < places.size(); ++i) {
    const bool is_behind = places[i - 1]->file != places[i]->file ||
                           places[i]->offset - places[i - 1]->offset >= places[i - 1]->bytes;
    if (!is_behind) return wrong("has two chunks at one place of " + places[i]->file);
  }
  return {};
}

// Finds the places of the chunks and drops empty chunks, which ranks without a part of a tensor
// have.
Status place_chunks(const std::string& name, const Value* list, const Places& places,
                    const pickle::DtypeInfo& dtype, DcpTensor& tensor) {
  const pickle::Values* chunks = list == nullptr ? nullptr : list->items();
  if (chunks == nullptr) return wrong("has no list of chunks");
  for (const Value& each : *chunks) {
    Result<DcpChunk> chunk = read_chunk(each, tensor.shape);
    if (!chunk) return chunk.error();
    const int64_t numel = *product(chunk->sizes);
    if (numel == 0) continue;
    const auto found = places.find(Index{name, chunk->offsets});
    if (found == places.end()) return wrong("has a chunk that storage_data lacks");
    if (found->second.bytes / static_cast<uint64_t>(dtype.bytes) < static_cast<uint64_t>(numel)) {
      return wrong("has a chunk of " + std::to_string(numel) + " elements in " +
                   std::to_string(found->second.bytes) + " bytes");
    }
    chunk->place = found->second;
    tensor.chunks.push_back(std::move(*chunk));
  }
  return {};
}

// The text names the error.
Result<DcpTensor> read_tensor(const std::string& name, const Value& value, const Places& places,
                              size_t most_corners) {
  const pickle::DtypeInfo* dtype = dtype_of(value.find("properties"));
  if (dtype == nullptr) return wrong("has no dtype");
  auto shape = size_of(value.find("size"));
  if (!shape || shape->size() > limits::kTensorDimensions) return wrong("has no shape");
  DcpTensor tensor{std::string(dtype->name), std::move(*shape), {}};
  const auto numel = product(tensor.shape);
  int64_t bytes = 0;
  if (!numel || __builtin_mul_overflow(*numel, dtype->bytes, &bytes)) {
    return wrong("has more elements than memory can hold");
  }
  Status checked = place_chunks(name, value.find("chunks"), places, *dtype, tensor);
  if (checked) checked = check_cover(tensor, *numel, most_corners);
  if (checked) checked = check_places(tensor);
  if (!checked) return checked.error();
  return tensor;
}

}  // namespace

Result<DcpMetadata> parse_dcp_metadata(std::string_view bytes, pickle::ReadLimits limits) {
  limits.text_bytes += bytes.size();  // a pickle that repeats no parts unfolds to less than this
  const Result<Value> value = pickle::read_dcp_metadata(bytes, limits);
  if (!value) return value.error();
  const auto* entries = value->find_as<Dict>("state_dict_metadata");
  const auto* storage_data = value->find_as<Dict>("storage_data");
  if (!is_of_class(*value, "Metadata") || entries == nullptr || storage_data == nullptr) {
    return wrong("it is no metadata of torch.distributed.checkpoint");
  }
  const Result<Places> places = read_places(*storage_data);
  if (!places) return places.error();
  DcpMetadata made;
  std::set<std::string_view> names;
  for (const auto& [key, entry] : entries->pairs) {
    const auto* name = key.get_if<std::string>();
    if (name == nullptr) return wrong("its state_dict_metadata has a key that is no name");
    if (!names.insert(*name).second) return wrong_entry(*name, "is in it twice");
    if (is_of_class(entry, "TensorStorageMetadata")) {
      Result<DcpTensor> tensor = read_tensor(*name, entry, *places, limits.made);
      if (!tensor) return wrong("tensor '" + text::printable(*name) + "' " + tensor.error().text);
      made.tensors.emplace(*name, std::move(*tensor));
    } else if (is_of_class(entry, "BytesStorageMetadata")) {
      const auto place = places->find(Index{*name, std::nullopt});
      if (place == places->end()) return wrong_entry(*name, "has no place in storage_data");
      made.objects.emplace(*name, place->second);
    } else {
      return wrong_entry(*name, "is neither a tensor nor an object");
    }
  }
  return made;
}

}  // namespace cpprun::archive

#include "launcher/cpprunctl/snapshot/merged_tensor_file.hpp"

namespace cpprun::ctl {
namespace {

template <class Visit>
void for_each_tensor(pickle::Value& value, const Visit& visit) {
  if (auto* tensor = value.get_if<pickle::TensorRef>()) visit(*tensor);
  if (auto* list = value.get_if<pickle::List>()) {
    for (pickle::Value& item : list->items) for_each_tensor(item, visit);
  }
  if (auto* tuple = value.get_if<pickle::Tuple>()) {
    for (pickle::Value& item : tuple->items) for_each_tensor(item, visit);
  }
  if (auto* dict = value.get_if<pickle::Dict>()) {
    for (auto& [key, held] : dict->pairs) for_each_tensor(held, visit);
  }
}

}  // namespace

pickle::Value MergedFile::take(std::shared_ptr<const archive::TensorFile> file) {
  const size_t number = files_++;
  std::map<std::string, std::string> renamed;
  pickle::Value value = file->value();
  for_each_tensor(value, [&](pickle::TensorRef& tensor) {
    const auto [found, is_new] = renamed.try_emplace(
        tensor.storage, std::to_string(number) + "_" + std::to_string(renamed.size()));
    if (is_new) storages_[found->second] = {file, tensor.storage};
    tensor.storage = found->second;
  });
  return value;
}

Result<archive::Written> MergedFile::write(archive::Output& output,
                                           const pickle::Value& value) const {
  const archive::Plan plan(archive::storages_of(value));
  std::vector<uint32_t> crc32s;
  std::vector<std::byte> bytes;
  for (const archive::Place& place : plan.places()) {
    const From& from = storages_.at(place.name);
    bytes.resize(from.file->storage_bytes(from.storage));
    if (Status read = from.file->read_storage(from.storage, bytes); !read.ok()) return read.error();
    const auto wanted = archive::ConstBytes(bytes).first(place.bytes);
    Result<uint32_t> crc = archive::write_part(output, place, 0, wanted);
    if (!crc) return crc.error();
    crc32s.push_back(*crc);
  }
  return archive::write_rest(output, plan, value, crc32s);
}

}  // namespace cpprun::ctl

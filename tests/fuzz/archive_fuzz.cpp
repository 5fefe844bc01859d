// Arbitrary bytes as a tensor file, as the header and the index of safetensors files, and as the
// `.metadata` of torch.distributed.checkpoint. Nothing may crash, hang or grow; a tensor file that
// opens and verifies must be the same after writing and reading it again.
#include <cstdlib>
#include <cstring>
#include <map>

#include "snapshot_files/archive/dcp_metadata.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/archive/safetensors.hpp"
#include "snapshot_files/archive/safetensors_header.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace {

using namespace cpprun;

class Text final : public archive::Output {
 public:
  Status write_at(uint64_t offset, archive::ConstBytes bytes) override {
    if (text.size() < offset + bytes.size()) text.resize(offset + bytes.size());
    if (!bytes.empty()) std::memcpy(text.data() + offset, bytes.data(), bytes.size());
    return {};
  }
  std::string text;
};

const pickle::ReadLimits kFuzzLimits{.nodes = 100'000, .text_bytes = 1 << 20};
// Behind the header of a safetensors file.
constexpr uint64_t kDataBytes = 64;

std::string read_storage(const archive::TensorFile& file, const std::string& name) {
  std::string bytes(file.storage_bytes(name), '\0');
  Status read =
      file.read_storage(name, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  return read.ok() ? bytes : "";
}

Result<archive::TensorFile> open(const std::string& text) {
  return archive::TensorFile::open(
      std::make_shared<archive::MemorySource>(archive::bytes_of(text), "fuzz"), kFuzzLimits);
}

bool has_long_names(const archive::TensorFile& file) {
  for (const archive::StorageSize& storage : archive::storages_of(file.value())) {
    if (storage.name.size() > archive::Plan::kNameMax) return true;
  }
  return false;
}

void go_round(const archive::TensorFile& file) {
  Text out;
  std::map<std::string, std::string> bytes;
  std::map<std::string, uint64_t> sizes;
  for (const auto& [name, size] : archive::storages_of(file.value())) sizes[name] = size;
  const auto written = archive::write_file(out, file.value(), [&](const std::string& name) {
    bytes[name] = read_storage(file, name);
    return archive::bytes_of(bytes[name]).first(sizes[name]);
  });
  const auto again = open(out.text);
  if (!written || !again || !again->verify().ok()) std::abort();
  // Compares pickles, since NaN is unequal to itself.
  if (pickle::write(again->value()) != pickle::write(file.value())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(archive::parse_safetensors_header(text, size + kDataBytes));
  static_cast<void>(archive::parse_safetensors_index(text));
  static_cast<void>(archive::parse_dcp_metadata(text, kFuzzLimits));
  const auto file = open(text);
  if (!file || !file->verify().ok()) return 0;
  Text out;
  static_cast<void>(write_safetensors(out, *file, archive::tensors_of(file->value())));
  if (!has_long_names(*file)) go_round(*file);
  return 0;
}

// A tensor file of 100 small storages: planned and written to a null output; read from memory.
#include <cstring>
#include <memory>
#include <string>

#include "bench/parts/parts.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/archive/tensor_file.hpp"

namespace cpprun::bench {
namespace {

constexpr int64_t kNumel = 64;

pickle::Value state_dict() {
  pickle::Dict dict;
  for (int i = 0; i < 100; ++i) {
    dict.pairs.emplace_back(
        "layers." + std::to_string(i) + ".weight",
        pickle::TensorRef{std::to_string(i), "float32", kNumel, 0, {8, 8}, {8, 1}, false});
  }
  return dict;
}

class Nowhere final : public archive::Output {
 public:
  Status write_at(uint64_t, archive::ConstBytes bytes) override {
    written_ += bytes.size();
    return {};
  }
  size_t written() const { return written_; }

 private:
  size_t written_ = 0;
};

class Text final : public archive::Output {
 public:
  Status write_at(uint64_t offset, archive::ConstBytes bytes) override {
    if (text.size() < offset + bytes.size()) text.resize(offset + bytes.size());
    if (!bytes.empty()) std::memcpy(text.data() + offset, bytes.data(), bytes.size());
    return {};
  }
  std::string text;
};

const std::string kStorage(kNumel * 4, 'x');
archive::ConstBytes bytes_of_storage(const std::string&) { return archive::bytes_of(kStorage); }

}  // namespace

BENCH_PART(tensor_file_write) {
  return [tree = state_dict()](size_t n) {
    Nowhere out;
    while (n-- > 0) keep(archive::write_file(out, tree, bytes_of_storage).ok());
    keep(out.written());
  };
}

BENCH_PART(tensor_file_open) {
  auto file = std::make_shared<Text>();
  keep(archive::write_file(*file, state_dict(), bytes_of_storage).ok());
  const auto source = std::make_shared<archive::MemorySource>(archive::bytes_of(file->text));
  return [file, source](size_t n) {
    while (n-- > 0) keep(archive::TensorFile::open(source).ok());
  };
}

}  // namespace cpprun::bench

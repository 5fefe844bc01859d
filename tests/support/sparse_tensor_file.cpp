// Writes a sparse tensor file of more than 5 GiB: sparse_tensor_file PATH.
#include <array>
#include <cstdio>

#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/folders/file_layer.hpp"

namespace {

using namespace cpprun;

constexpr int64_t kHuge = (int64_t{5} << 30) + 3;

uint32_t crc32_of_zeros(uint64_t count) {
  static constexpr std::array<std::byte, 1> kZero{};
  uint32_t all = 0, doubled = archive::crc32(kZero);
  for (uint64_t bytes = 1; count != 0; count >>= 1, bytes *= 2) {
    if ((count & 1) != 0) all = archive::crc32_combine(all, doubled, bytes);
    doubled = archive::crc32_combine(doubled, doubled, bytes);
  }
  return all;
}

pickle::TensorRef tensor(const char* storage, int64_t numel) {
  return {storage, "uint8", numel, 0, {numel}, {1}, false};
}

Status write(const std::string& path) {
  const pickle::Value tree(pickle::Dict{{{"huge", tensor("0", kHuge)}, {"small", tensor("1", 4)}}});
  const archive::Plan plan(archive::storages_of(tree));
  auto file = snapshot_files::real_files().create(path);
  if (!file) return file.error();
  Result<uint32_t> small =
      archive::write_part(**file, *plan.find("1"), 0, archive::bytes_of("abcd"));
  if (!small) return small.error();
  const std::array<uint32_t, 2> crc32s{crc32_of_zeros(kHuge), *small};
  Result<archive::Written> written = archive::write_rest(**file, plan, tree, crc32s);
  return written ? Status() : Status(written.error());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  cpprun::Status written = write(argv[1]);
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.error().text.c_str());
  return written.ok() ? 0 : 1;
}

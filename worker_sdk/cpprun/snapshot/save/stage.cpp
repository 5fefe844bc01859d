#include "cpprun/snapshot/save/stage.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "cpprun/snapshot/save/device_copy.hpp"
#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/stream_copy.hpp"

namespace cpprun::snapshot {
namespace {

constexpr uint64_t kSmall = 64;
constexpr size_t kPiece = 4 << 20;  // bytes that one task of the parallel copy handles

StagedFile plan_file(Content& content, int pieces) {
  StagedFile file;
  file.name = std::move(content.name);
  file.value = std::move(content.value);
  std::vector<ShardSource> shares;
  for (const Storage& each : content.storages) {
    const auto bytes = static_cast<uint64_t>(each.bytes.numel());
    file.storages.push_back({each.name, bytes});
    shares.push_back({each.name, bytes, each.is_leaders});
  }
  file.parts = plan_shards(shares, pieces);
  file.mine.resize(file.parts.size());
  file.crc32s.resize(file.parts.size());
  return file;
}

uint64_t aligned(uint64_t at, uint64_t bytes) {
  const uint64_t to = bytes >= archive::kBigStorage ? archive::kBlock : kSmall;
  return (at + to - 1) / to * to;
}

// Calls f(file, file number, part number, offset in the memory) for each part that the rank keeps,
// those of its own file last. Returns the total size.
template <class S, class F>
uint64_t each_part(S& staged, F f) {
  uint64_t at = 0;
  const auto of_file = [&](auto& file, size_t number, bool is_own) {
    for (size_t i = 0; i < file.parts.size(); ++i) {
      if (!is_own && !staged.share.keeps(file.parts[i].piece)) continue;
      at = aligned(at, file.parts[i].bytes);
      f(file, number, i, at);
      at += file.parts[i].bytes;
    }
  };
  for (size_t i = 0; i < staged.shared.size(); ++i) of_file(staged.shared[i], i, false);
  of_file(staged.own, staged.shared.size(), true);
  return at;
}

// Returns the crc32 where the copy computes it at no extra cost; else the writing thread does.
std::optional<uint32_t> copy_bytes(const at::Tensor& from, std::byte* to) {
  const archive::ConstBytes bytes(static_cast<const std::byte*>(from.const_data_ptr()),
                                  static_cast<size_t>(from.numel()));
  const size_t pieces = (bytes.size() + kPiece - 1) / kPiece;
  const auto piece = [&](size_t i) {
    return bytes.subspan(i * kPiece, std::min(kPiece, bytes.size() - i * kPiece));
  };
  std::vector<std::optional<uint32_t>> crc32s(pieces);
  at::parallel_for(0, static_cast<int64_t>(pieces), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      crc32s[i] = archive::copy_crc32(to + i * kPiece, piece(i));
      if (!crc32s[i]) archive::stream_copy(to + i * kPiece, piece(i).data(), piece(i).size());
    }
  });
  std::optional<uint32_t> whole = 0;
  for (size_t i = 0; i < pieces && whole; ++i) {
    whole = crc32s[i] ? std::optional(archive::crc32_combine(*whole, *crc32s[i], piece(i).size()))
                      : std::nullopt;
  }
  return whole;
}

}  // namespace

archive::Content StagedFile::whole(std::string_view storage) const {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].storage == storage) return {mine[i], crc32s[i]};
  }
  return {};
}

Staged plan(Contents& contents, const Share& share) {
  Staged staged;
  staged.share = share;
  for (Content& each : contents.shared) staged.shared.push_back(plan_file(each, share.pieces));
  staged.own = plan_file(contents.own, 1);
  return staged;
}

uint64_t bytes_of(const Staged& staged) {
  return each_part(staged, [](const auto&, size_t, size_t, uint64_t) {});
}

void copy(const Contents& contents, std::span<std::byte> memory, Staged& staged) {
  size_t of_file = 0, storage = 0;  // parts are in the order of the storages
  DeviceCopies devices;
  each_part(staged, [&](StagedFile& file, size_t number, size_t i, uint64_t at) {
    const Content& content =
        number < contents.shared.size() ? contents.shared[number] : contents.own;
    const ShardRange& part = file.parts[i];
    if (std::exchange(of_file, number) != number) storage = 0;
    while (content.storages[storage].name != part.storage) ++storage;
    const auto bytes = content.storages[storage].bytes.narrow(0, static_cast<int64_t>(part.from),
                                                              static_cast<int64_t>(part.bytes));
    if (bytes.device().is_cpu()) {
      file.crc32s[i] = copy_bytes(bytes, memory.data() + at);
    } else {
      devices.add(bytes, memory.data() + at);
    }
    file.mine[i] = memory.subspan(at, part.bytes);
  });
  devices.finish();
}

}  // namespace cpprun::snapshot

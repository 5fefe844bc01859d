#include "snapshot_files/archive/stream_copy.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace cpprun::archive {
namespace {

TEST(StreamCopy, CopiesExactlyTheRequestedBytes) {
  constexpr size_t kLarge = 300'000;
  std::vector<std::byte> from(kLarge + 200), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + i / 251);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{65}, kLarge, kLarge + 63}) {
    for (const size_t begin : {size_t{0}, size_t{1}, size_t{17}, size_t{64}}) {
      std::vector<std::byte> expected(to.size(), std::byte{7});
      to = expected;
      std::memcpy(expected.data() + begin, from.data() + 3, bytes);
      stream_copy(to.data() + begin, from.data() + 3, bytes);
      EXPECT_EQ(to, expected) << bytes << " bytes to " << begin;
    }
  }
}

}  // namespace
}  // namespace cpprun::archive

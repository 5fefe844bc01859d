// Constants of torch.save's format before zip files (torch.serialization._legacy_save). Private.
#pragma once

#include <cstdint>
#include <string_view>

namespace cpprun::pickle::legacy {

// 0x1950a86a20f9469cfc6c, as a pickle has it.
inline constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
inline constexpr int64_t kVersion = 1001;

}  // namespace cpprun::pickle::legacy

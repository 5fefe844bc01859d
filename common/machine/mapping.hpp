// Mapped memory that unmaps itself.
#pragma once

#include <cstddef>
#include <memory>

namespace cpprun {

struct Unmap {
  size_t bytes = 0;
  void operator()(std::byte* at) const;
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

}  // namespace cpprun

#include "common/machine/mapping.hpp"

#include <sys/mman.h>

namespace cpprun {

void Unmap::operator()(std::byte* at) const { ::munmap(at, bytes); }

}  // namespace cpprun

#include "common/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace cpprun {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "cpprun: this is a bug in cpprun: '%s' does not hold at %s:%d\n", condition,
               file, line);
  std::abort();
}

}  // namespace cpprun

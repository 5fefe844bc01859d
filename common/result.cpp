#include "common/result.hpp"

#include <cstring>

namespace cpprun {

Error system_error(const std::string& what, int errno_value) {
  return Error{ErrorKind::System, what + ": " + std::strerror(errno_value)};
}

}  // namespace cpprun

#include "common/version.hpp"

namespace cpprun {

const std::string& version() {
  static const std::string kVersion = CPPRUN_VERSION;
  return kVersion;
}

}  // namespace cpprun

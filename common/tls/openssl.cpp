#include "common/tls/openssl.hpp"

#include <dlfcn.h>

namespace cpprun {
namespace {

// The newest first. Each loads its libcrypto too.
constexpr const char* kLibraries[] = {"libssl.so.3", "libssl.so.1.1"};

template <class Function>
bool take(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

Result<OpenSsl> open_library() {
  void* library = nullptr;
  std::string why;
  std::string name;
  for (const char* each : kLibraries) {
    if (library != nullptr) break;
    name = each;
    library = ::dlopen(each, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) why += std::string(why.empty() ? "" : "; ") + ::dlerror();
  }
  if (library == nullptr) {
    return Error{ErrorKind::System,
                 "TLS needs OpenSSL 3 or 1.1.1, which can't be loaded on this machine (" + why +
                     "); on Debian and Ubuntu install the package libssl3 (or libssl1.1)"};
  }
  OpenSsl found;
  bool has_all = true;
#define CPPRUN_TAKE(name) has_all = take(library, #name, found.name) && has_all;
  CPPRUN_OF_OPENSSL(CPPRUN_TAKE)
#undef CPPRUN_TAKE
  if (!has_all) {
    return Error{ErrorKind::System,
                 name +
                     " of this machine lacks what TLS needs of it; install OpenSSL 1.1.1 or "
                     "newer (on Debian and Ubuntu the package libssl3 or libssl1.1)"};
  }
  return found;
}

}  // namespace

Result<const OpenSsl*> OpenSsl::load() {
  static const Result<OpenSsl> loaded = open_library();
  if (!loaded) return loaded.error();
  return &*loaded;
}

int OpenSsl::reason_of(unsigned long code) const {  // NOLINT: OpenSSL's own type
  constexpr unsigned long kReasonMask = 0xFFF;      // NOLINT: ERR_GET_REASON of OpenSSL 1.1
  if (OpenSSL_version_num() >= 0x30000000) return ERR_GET_REASON(code);
  return static_cast<int>(code & kReasonMask);
}

std::string OpenSsl::newest_error() const {
  const unsigned long code = ERR_get_error();  // NOLINT: OpenSSL's own type
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "it gives no reason";
}

}  // namespace cpprun

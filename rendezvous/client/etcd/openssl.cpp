#include "rendezvous/client/etcd/openssl.hpp"

#include <dlfcn.h>

namespace cpprun::etcd {
namespace {

constexpr const char* kLibrary = "libssl.so.3";  // loads libcrypto too

template <class Function>
bool take(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

Result<OpenSsl> open_library() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error{ErrorKind::System, std::string("TLS needs OpenSSL 3 (") + kLibrary +
                                        "), which is not on this machine: " + ::dlerror() +
                                        "; on Debian install libssl3"};
  }
  OpenSsl found;
  bool has_all = true;
#define CPPRUN_TAKE(name) has_all = take(library, #name, found.name) && has_all;
  CPPRUN_OF_OPENSSL(CPPRUN_TAKE)
#undef CPPRUN_TAKE
  if (!has_all) {
    return Error{ErrorKind::System,
                 std::string(kLibrary) + " of this machine lacks what TLS needs of it"};
  }
  return found;
}

}  // namespace

Result<const OpenSsl*> OpenSsl::load() {
  static const Result<OpenSsl> loaded = open_library();
  if (!loaded) return loaded.error();
  return &*loaded;
}

std::string OpenSsl::newest_error() const {
  const unsigned long code = ERR_get_error();  // NOLINT: OpenSSL's own type
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "it says no reason";
}

}  // namespace cpprun::etcd

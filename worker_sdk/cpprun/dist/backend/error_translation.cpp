#include "cpprun/dist/backend/error_translation.hpp"

#include <array>
#include <string_view>

#include <torch/csrc/distributed/c10d/exception.h>

#include "cpprun/dist/group/group_registry.hpp"
#include "cpprun/dist/group/group_state.hpp"

namespace cpprun::dist {
namespace {

enum class Class { Argument, Network, Timeout, Unsupported, Mismatch, Backend };

struct Part {
  std::string_view text;
  Class means;
};

// The first match decides. A dead peer is a network error, even if the text also mentions a store
// or a timeout.
constexpr std::array kParts = {
    Part{"Detected mismatch between collectives", Class::Mismatch},
    Part{"Connection reset by peer", Class::Network},
    Part{"Connection closed by peer", Class::Network},
    Part{"Broken pipe", Class::Network},
    Part{"Timed out", Class::Timeout},
    Part{"timed out", Class::Timeout},
    Part{"imeout", Class::Timeout},
    Part{"Connection refused", Class::Network},
    Part{"Connection was likely closed", Class::Network},
    Part{"failed to recv", Class::Network},
    Part{"failed to connect", Class::Network},
    Part{"connectFullMesh failed", Class::Network},
    Part{"Socket closed", Class::Network},
    Part{"remote process exited", Class::Network},
    Part{"not support", Class::Unsupported},
    Part{"nsupported", Class::Unsupported},
    Part{"Cannot use ReduceOp", Class::Unsupported},
    Part{"not implemented", Class::Unsupported},
    Part{"No backend type associated with device type", Class::Unsupported},
};

Class class_of(std::string_view text, Class otherwise) {
  for (const Part& part : kParts) {
    if (text.find(part.text) != std::string_view::npos) return part.means;
  }
  return otherwise;
}

std::exception_ptr make(Class which, const std::string& text) {
  switch (which) {
    case Class::Argument: return std::make_exception_ptr(DistArgumentError(text));
    case Class::Network: return std::make_exception_ptr(DistNetworkError(text));
    case Class::Timeout: return std::make_exception_ptr(DistTimeoutError(text));
    case Class::Unsupported: return std::make_exception_ptr(DistUnsupportedError(text));
    case Class::Mismatch: return std::make_exception_ptr(DistMismatchError(text));
    case Class::Backend: break;
  }
  return std::make_exception_ptr(DistBackendError(text));
}

// LibTorch appends a source position and a stack, which do not help the user.
std::string without_stack(std::string text) {
  for (const char* mark : {"\nException raised from", " Exception raised from"}) {
    const size_t at = text.find(mark);
    if (at != std::string::npos) text.resize(at);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::exception_ptr sorted(const std::string& where, const std::string& said, Class otherwise,
                          bool is_sure) {
  const std::string text = without_stack(said);
  return make(is_sure ? otherwise : class_of(text, otherwise), where + ": " + text);
}

}  // namespace

const char* error_class_of(const std::string& text) {
  switch (class_of(text, Class::Backend)) {
    case Class::Argument: return "DistArgumentError";
    case Class::Network: return "DistNetworkError";
    case Class::Timeout: return "DistTimeoutError";
    case Class::Unsupported: return "DistUnsupportedError";
    case Class::Mismatch: return "DistMismatchError";
    case Class::Backend: break;
  }
  return "DistBackendError";
}

std::exception_ptr translate(const std::exception_ptr& thrown, const std::string& where) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DistError&) {
    return thrown;
  } catch (const c10d::TimeoutError& error) {
    return sorted(where, error.what_without_backtrace(), Class::Timeout, true);
  } catch (const c10::DistNetworkError& error) {
    return sorted(where, error.what_without_backtrace(), Class::Network, false);
  } catch (const c10::NotImplementedError& error) {
    return sorted(where, error.what_without_backtrace(), Class::Unsupported, true);
  } catch (const c10::ValueError& error) {
    return sorted(where, error.what_without_backtrace(), Class::Argument, true);
  } catch (const c10::TypeError& error) {
    return sorted(where, error.what_without_backtrace(), Class::Argument, true);
  } catch (const c10::IndexError& error) {
    return sorted(where, error.what_without_backtrace(), Class::Argument, true);
  } catch (const c10::Error& error) {
    return sorted(where, error.what_without_backtrace(), Class::Backend, false);
  } catch (const std::invalid_argument& error) {
    return sorted(where, error.what(), Class::Argument, false);
  } catch (const std::exception& error) {
    return sorted(where, error.what(), Class::Backend, false);
  } catch (...) {
    return make(Class::Backend, where + ": something that is no std::exception was thrown");
  }
}

std::exception_ptr translate(const std::exception_ptr& thrown, const char* call,
                             const ProcessGroup& group) {
  const auto state = group.state() ? group.state() : registry::default_group();
  return translate(thrown, state ? std::string(call) + " in " + describe(*state) : call);
}

}  // namespace cpprun::dist

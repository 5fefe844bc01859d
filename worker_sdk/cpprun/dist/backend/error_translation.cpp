#include "cpprun/dist/backend/error_translation.hpp"

#include <array>
#include <string_view>

#include <torch/csrc/distributed/c10d/exception.h>

#include "cpprun/dist/group/group_registry.hpp"
#include "cpprun/dist/group/group_state.hpp"

namespace cpprun::dist {
namespace {

using Make = std::exception_ptr (*)(const std::string& text);

template <class Error>
std::exception_ptr make(const std::string& text) {
  return std::make_exception_ptr(Error(text));
}

struct Part {
  std::string_view text;
  Make make;
};

// The first match decides. A dead peer is a network error, even if the text also mentions a store
// or a timeout.
constexpr std::array kParts = {
    Part{"Detected mismatch between collectives", make<DistMismatchError>},
    Part{"Connection reset by peer", make<DistNetworkError>},
    Part{"Connection closed by peer", make<DistNetworkError>},
    Part{"Broken pipe", make<DistNetworkError>},
    Part{"Timed out", make<DistTimeoutError>},
    Part{"timed out", make<DistTimeoutError>},
    Part{"imeout", make<DistTimeoutError>},
    Part{"Connection refused", make<DistNetworkError>},
    Part{"Connection was likely closed", make<DistNetworkError>},
    Part{"failed to recv", make<DistNetworkError>},
    Part{"failed to connect", make<DistNetworkError>},
    Part{"connectFullMesh failed", make<DistNetworkError>},
    Part{"Socket closed", make<DistNetworkError>},
    Part{"remote process exited", make<DistNetworkError>},
    Part{"not support", make<DistUnsupportedError>},
    Part{"nsupported", make<DistUnsupportedError>},
    Part{"Cannot use ReduceOp", make<DistUnsupportedError>},
    Part{"not implemented", make<DistUnsupportedError>},
    Part{"No backend type associated with device type", make<DistUnsupportedError>},
};

Make make_for(std::string_view text, Make otherwise) {
  for (const Part& part : kParts) {
    if (text.find(part.text) != std::string_view::npos) return part.make;
  }
  return otherwise;
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

std::exception_ptr sorted(const std::string& where, const std::string& message, Make otherwise,
                          bool is_sure) {
  const std::string text = without_stack(message);
  return (is_sure ? otherwise : make_for(text, otherwise))(where + ": " + text);
}

}  // namespace

std::exception_ptr translate(const std::exception_ptr& thrown, const std::string& where) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DistError&) {
    return thrown;
  } catch (const c10d::TimeoutError& error) {
    return sorted(where, error.what_without_backtrace(), make<DistTimeoutError>, true);
  } catch (const c10::DistNetworkError& error) {
    return sorted(where, error.what_without_backtrace(), make<DistNetworkError>, false);
  } catch (const c10::NotImplementedError& error) {
    return sorted(where, error.what_without_backtrace(), make<DistUnsupportedError>, true);
  } catch (const c10::ValueError& error) {
    return sorted(where, error.what_without_backtrace(), make<DistArgumentError>, true);
  } catch (const c10::TypeError& error) {
    return sorted(where, error.what_without_backtrace(), make<DistArgumentError>, true);
  } catch (const c10::IndexError& error) {
    return sorted(where, error.what_without_backtrace(), make<DistArgumentError>, true);
  } catch (const c10::Error& error) {
    return sorted(where, error.what_without_backtrace(), make<DistBackendError>, false);
  } catch (const std::invalid_argument& error) {
    return sorted(where, error.what(), make<DistArgumentError>, false);
  } catch (const std::exception& error) {
    return sorted(where, error.what(), make<DistBackendError>, false);
  } catch (...) {
    return make<DistBackendError>(where + ": something that is no std::exception was thrown");
  }
}

std::exception_ptr translate(const std::exception_ptr& thrown, const char* call,
                             const ProcessGroup& group) {
  const auto state = group.state() ? group.state() : registry::default_group();
  return translate(thrown, state ? std::string(call) + " in " + describe(*state) : call);
}

}  // namespace cpprun::dist

// Makes Gloo backends. Private to dist. Only its source includes c10d's Gloo header, with the stubs
// of gloo_stubs/, because the wheel contains none of Gloo's own headers.
#pragma once

#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace cpprun::dist {

// Where Gloo listens: an interface or an address; both empty: the address of the host name.
struct GlooEndpoint {
  std::string interface;
  std::string address;
};

// Blocks until all ranks are connected. Throws the exceptions of LibTorch, Gloo and the store.
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size, std::chrono::milliseconds timeout,
                                            const GlooEndpoint& endpoint);

}  // namespace cpprun::dist

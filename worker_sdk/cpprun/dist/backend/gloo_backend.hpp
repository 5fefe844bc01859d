// Makes Gloo backends. Private to dist; its source is the only one that sees c10d's Gloo header,
// over the stand-ins of gloo_stubs/, because the wheel ships none of Gloo's own headers.
#pragma once

#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace cpprun::dist {

// What Gloo listens on: an interface or an address; both empty: what the own host name means.
struct GlooPlace {
  std::string interface;
  std::string address;
};

// Blocks until all ranks are connected. Throws what LibTorch, Gloo or the store throw.
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size, std::chrono::milliseconds timeout,
                                            const GlooPlace& place);

}  // namespace cpprun::dist

// A fixture for DistributedDataParallel in a world of this process alone.
#pragma once

#include <gtest/gtest.h>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::test {

class DdpAlone : public testing::Test {
 protected:
  DdpAlone() : group_(dist::init_process_group(alone())) {}

 private:
  static dist::InitOptions alone() {
    dist::InitOptions options;
    options.backend = "gloo";
    options.store = dist::make_hash_store();
    options.rank = 0;
    options.world_size = 1;
    return options;
  }
  dist::ProcessGroupGuard group_;
};

}  // namespace cpprun::test

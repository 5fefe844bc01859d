// sampler_passes N WORLD RANK SHUFFLE PASSES: prints the samples of several epochs without
// set_epoch; twins/sampler_passes.py prints the same.
#include <iostream>
#include <sstream>

#include "cpprun/data/distributed_sampler.hpp"
#include "tests/sdk/support/cases.hpp"

SDK_CASE(sampler_passes) {
  cpprun::data::DistributedSampler sampler(std::stoul(args.at(0)),
                                           {.num_replicas = std::stoi(args.at(1)),
                                            .rank = std::stoi(args.at(2)),
                                            .shuffle = args.at(3) == "1"});
  for (int pass = 0; pass < std::stoi(args.at(4)); ++pass) {
    std::ostringstream line;
    while (const auto batch = sampler.next(4)) {
      for (const size_t index : *batch) line << ' ' << index;
    }
    std::cout << pass << ':' << line.str() << '\n';
  }
  return 0;
}

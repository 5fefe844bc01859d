// What seems to be forgotten: things of the SDK that this process has, and its Snapshot lacks.
#include <cstdio>
#include <string>

#include <algorithm>

#include "cpprun/dist/live_objects.hpp"
#include "cpprun/snapshot/impl.hpp"

namespace cpprun {

using snapshot::Kind;

void Snapshot::Impl::hint() {
  if (std::exchange(has_hinted, true) || !options.has_hints || !ranks.is_first()) return;
  const auto tracks = [&](Kind kind) {
    return std::any_of(tracked.begin(), tracked.end(),
                       [kind](const auto& each) { return each.kind == kind; });
  };
  const auto any_module = [&](bool (*is)(const torch::nn::Module&)) {
    return std::any_of(modules.begin(), modules.end(),
                       [is](const auto* each) { return is(*each); });
  };
  std::string missing;
  const auto add = [&](bool is_missing, const char* what) {
    if (is_missing) missing += (missing.empty() ? "" : ", ") + std::string(what);
  };
  using dist::LiveObjects;
  add(!tracks(Kind::Optimizer) && any_module(snapshot::is_trained), "the optimizer");
  add(!tracks(Kind::Scheduler) && LiveObjects::schedulers.load() > 0, "the scheduler");
  add(!tracks(Kind::Sampler) && LiveObjects::samplers.load() > 0, "the sampler");
  add(!tracks(Kind::Random) && any_module(snapshot::draws_random_numbers),
      "the random numbers that the model draws (track_rng)");
  if (missing.empty()) return;
  std::fprintf(stderr,
               "cpprun: hint: the Snapshot does not track %s; a resumed run will not go on "
               "exactly (.has_hints = false silences this)\n",
               missing.c_str());
}

}  // namespace cpprun

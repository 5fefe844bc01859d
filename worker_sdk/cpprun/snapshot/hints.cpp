// Warnings about probable mistakes in the use of a Snapshot.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cpprun/dist/live_objects.hpp"
#include "cpprun/snapshot/tracked_objects.hpp"

namespace cpprun::snapshot {

void warn_about_untracked(const TrackedObjects& objects) {
  const auto tracks = [&](Kind kind) {
    return std::ranges::count(objects.all(), kind, &Tracked::kind) > 0;
  };
  const std::vector<const torch::nn::Module*> modules = objects.modules();
  const auto any_module = [&](bool (*is)(const torch::nn::Module&)) {
    return std::ranges::any_of(modules, [is](const auto* each) { return is(*each); });
  };
  std::string missing;
  const auto add = [&](bool is_missing, const char* what) {
    if (is_missing) missing += (missing.empty() ? "" : ", ") + std::string(what);
  };
  using dist::LiveObjects;
  add(!tracks(Kind::Optimizer) && any_module(is_trained), "the optimizer");
  add(!tracks(Kind::Scheduler) && LiveObjects::schedulers.load() > 0, "the scheduler");
  add(!tracks(Kind::Sampler) && LiveObjects::samplers.load() > 0, "the sampler");
  add(!tracks(Kind::Scaler) && LiveObjects::scalers.load() > 0, "the GradScaler");
  add(!tracks(Kind::CommHook) && LiveObjects::comm_hooks.load() > 0,
      "the communication hook (track the DistributedDataParallel itself)");
  add(!tracks(Kind::Random) && any_module(draws_random_numbers),
      "the random numbers that the model draws (track_rng)");
  if (missing.empty()) return;
  std::fprintf(stderr,
               "cpprun: hint: the Snapshot does not track %s; a resumed run will not continue "
               "exactly (.hints = false silences this)\n",
               missing.c_str());
}

}  // namespace cpprun::snapshot

// Warnings at the first save: SDK objects of this process that the Snapshot does not track, and
// parameters that differ between the ranks of a group, which write only one copy of them.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cpprun/dist/live_objects.hpp"
#include "cpprun/snapshot/impl.hpp"
#include "snapshot_files/archive/crc32.hpp"

namespace cpprun {
namespace {

using snapshot::Kind;
using snapshot::NamedParameter;

// Eight hexadecimal digits for each parameter.
std::string checksums(const std::vector<NamedParameter>& parameters) {
  std::string text;
  for (const NamedParameter& each : parameters) {
    const at::Tensor values = each.tensor.detach().cpu().contiguous();
    const archive::ConstBytes bytes(static_cast<const std::byte*>(values.const_data_ptr()),
                                    values.nbytes());
    text += archive::crc32_text(archive::crc32(bytes));
  }
  return text;
}

}  // namespace

// Collective at the first call, unless options.hints is false.
void Snapshot::Impl::hint() {
  if (std::exchange(has_hinted, true) || !options.hints) return;
  if (ranks.is_first()) hint_at_forgotten();
  if (ranks.world() > 1) hint_at_differences();
}

// DistributedDataParallel keeps parameters equal, except those that the user excludes from it.
void Snapshot::Impl::hint_at_differences() {
  constexpr size_t kDigits = 8;
  std::vector<NamedParameter> parameters = known_parameters();
  std::erase_if(parameters, [](const auto& each) { return each.tensor.layout() != at::kStrided; });
  const std::vector<std::string> of_ranks = ranks.gather(checksums(parameters));
  const std::vector<int>& members = group().members;
  if (ranks.rank() != group().leader()) return;
  const std::string& own = of_ranks[static_cast<size_t>(ranks.rank())];
  for (const int other : members) {
    const std::string& others = of_ranks[static_cast<size_t>(other)];
    if (others.size() != own.size()) continue;  // another model: the save itself fails
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (others.compare(i * kDigits, kDigits, own, i * kDigits, kDigits) == 0) continue;
      std::fprintf(stderr,
                   "cpprun: hint: parameter '%s' is not the same on ranks %d and %d, and the "
                   "snapshot that they write together has each only once: a resumed run will not "
                   "go on exactly. DistributedDataParallel keeps it the same; ranks that train "
                   "apart need a .dir each (.hints = false silences this)\n",
                   parameters[i].name.c_str(), ranks.rank(), other);
      return;
    }
  }
}

void Snapshot::Impl::hint_at_forgotten() const {
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
               "exactly (.hints = false silences this)\n",
               missing.c_str());
}

}  // namespace cpprun

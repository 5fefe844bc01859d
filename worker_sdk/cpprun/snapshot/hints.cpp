// Warnings about probable mistakes in the use of a Snapshot.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "cpprun/dist/live_objects.hpp"
#include "cpprun/snapshot/tracked_objects.hpp"
#include "snapshot_files/archive/crc32.hpp"

namespace cpprun::snapshot {
namespace {

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

// DistributedDataParallel keeps parameters equal, except those that the user excludes from it.
void warn_about_differences(const TrackedObjects& objects, const SnapshotComm& comm,
                            const Group& group) {
  constexpr size_t kDigits = 8;
  std::vector<NamedParameter> parameters = objects.parameters();
  std::erase_if(parameters, [](const auto& each) { return each.tensor.layout() != at::kStrided; });
  const std::vector<std::string> of_ranks = comm.gather(checksums(parameters));
  if (comm.rank() != group.leader()) return;
  const std::string& own = of_ranks[static_cast<size_t>(comm.rank())];
  for (const int other : group.members) {
    const std::string& others = of_ranks[static_cast<size_t>(other)];
    if (others.size() != own.size()) continue;  // another model: the save itself fails
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (others.compare(i * kDigits, kDigits, own, i * kDigits, kDigits) == 0) continue;
      std::fprintf(stderr,
                   "cpprun: hint: parameter '%s' is not the same on ranks %d and %d, and the "
                   "snapshot that they write together has each only once: a resumed run will not "
                   "continue exactly. DistributedDataParallel keeps it the same; ranks that train "
                   "apart need a .dir each (.hints = false silences this)\n",
                   parameters[i].name.c_str(), comm.rank(), other);
      return;
    }
  }
}

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

constexpr int64_t kSampleBytes = 1 << 20;

}  // namespace

std::string drift_sample(const std::vector<NamedParameter>& parameters, uint64_t number) {
  if (parameters.empty()) return "";
  const auto& [name, tensor] = parameters[number % parameters.size()];
  if (tensor.layout() != at::kStrided || !tensor.is_contiguous() || tensor.numel() == 0) return "";
  const int64_t most = std::max<int64_t>(kSampleBytes / static_cast<int64_t>(tensor.itemsize()), 1);
  const int64_t parts = (tensor.numel() + most - 1) / most;
  const auto part = static_cast<int64_t>(number / parameters.size()) % parts;
  const int64_t first = part * most;
  const at::Tensor values =
      tensor.detach().view({-1}).narrow(0, first, std::min(most, tensor.numel() - first)).cpu();
  const archive::ConstBytes bytes(static_cast<const std::byte*>(values.const_data_ptr()),
                                  values.nbytes());
  return name + ' ' + archive::crc32_text(archive::crc32(bytes));
}

void warn_about_mistakes(const TrackedObjects& objects, const SnapshotComm& comm,
                         FolderGroup& group) {
  if (comm.is_first()) warn_about_untracked(objects);
  if (comm.world() > 1) warn_about_differences(objects, comm, group.get());
}

}  // namespace cpprun::snapshot

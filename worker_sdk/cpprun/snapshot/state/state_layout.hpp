// Form: which tracked thing stands where in a snapshot's files. Private to snapshot.
//
// Folder: model.pt is the module's state_dict (of several: by name), optim.pt has everything else
// that is the same on all ranks, by name, rank-<r>.pt what is a rank's own. Single file:
// MODEL_STATE, OPTIMIZER_STATE, EPOCHS_RUN ..., and RANKS with one entry per rank.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cpprun/snapshot/state/tracked.hpp"

namespace cpprun::snapshot {

inline constexpr const char* kRanksKey = "RANKS";
inline constexpr const char* kFormatKey = "CPPRUN_FORMAT";
inline constexpr const char* kStepKey = "STEP";
inline const std::string kSecondsKey = "TRAINING_SECONDS";
inline constexpr const char* kSingleName = "snapshot";  // the single file, among Loaded's

// What goes into one file.
struct Content {
  std::string name;
  pickle::Value value;
  std::vector<Storage> storages;
};
struct Contents {
  std::vector<Content> shared;
  Content own;
};
// `seconds` of training so far, over all runs.
struct Counters {
  int64_t step = 0;
  double seconds = 0;
};
Contents capture(const std::vector<Tracked>& tracked, bool is_single, int rank,
                 const Counters& counters);

// Files that can be read, by name.
struct LoadedFile {
  pickle::Value value;
  std::shared_ptr<const Storages> storages;
};
using Loaded = std::map<std::string, LoadedFile>;

struct Applied {
  Counters counters;
  std::vector<std::string> missing;  // names of what the files do not have, modules excepted
  bool lacks_rank = false;           // nothing of this rank's own
  bool is_marked = false;            // written by cpprun
};
// Throws std::runtime_error that names what does not fit.
Applied apply(const std::vector<Tracked>& tracked, bool is_single, int rank, const Loaded& loaded);

// "MODEL_STATE" of the module "model", "EPOCHS_RUN" of the value "epochs_run".
std::string single_key(const Tracked& tracked);

}  // namespace cpprun::snapshot

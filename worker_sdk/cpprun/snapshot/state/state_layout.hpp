// State layout: where each tracked object is in the files of a snapshot. Private to snapshot.
//
// Folder form: model.pt is the module's state_dict (with several modules: a dict of them by name),
// optim.pt has the other objects that are equal on all ranks, by name, rank-<r>.pt the state of one
// rank. Single-file form: MODEL_STATE, OPTIMIZER_STATE, EPOCHS_RUN ..., and RANKS with one entry
// per rank.
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
inline constexpr const char* kSingleName = "snapshot";  // key of the single file in Loaded

// The content of one file.
struct Content {
  std::string name;
  pickle::Value value;
  std::vector<Storage> storages;
};
struct Contents {
  std::vector<Content> shared;
  Content own;
};
// `seconds`: training time so far, summed over all runs.
struct Counters {
  int64_t step = 0;
  double seconds = 0;
};
Contents capture(const std::vector<Tracked>& tracked, bool is_single, int rank,
                 const Counters& counters);

// Readable files, by name.
struct LoadedFile {
  pickle::Value value;
  std::shared_ptr<const Storages> storages;
};
using Loaded = std::map<std::string, LoadedFile>;

struct Applied {
  Counters counters;
  std::vector<std::string> missing;  // tracked objects that the files do not have
  bool is_marked = false;            // cpprun wrote the files
};
// Throws std::runtime_error that names the object that does not match.
Applied apply(const std::vector<Tracked>& tracked, bool is_single, int rank, const Loaded& loaded);

// "MODEL_STATE" for the module "model", "EPOCHS_RUN" for the value "epochs_run".
std::string single_key(const Tracked& tracked);

}  // namespace cpprun::snapshot

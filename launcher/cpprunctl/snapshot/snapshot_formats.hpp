// Converts between the two forms of a snapshot: a folder with model.pt, optim.pt and rank-<r>.pt,
// and a single file with MODEL_STATE, OPTIMIZER_STATE, EPOCHS_RUN, RANKS and so on
// (docs/reference/snapshots.md). Pure. Private to convert.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::ctl {

// The contents of the folder form's files.
struct FolderFormat {
  pickle::Value model, optimizer;
  std::vector<pickle::Value> ranks;
};

// Error: the file is not a snapshot.
Result<FolderFormat> to_folder(const pickle::Value& single);
pickle::Value to_single(const FolderFormat& folder);

// The subtree of the model: MODEL_STATE of a single file, else the whole tree.
const pickle::Value& model_of(const pickle::Value& value);
// A whole number under a key of the file; nothing if absent.
std::optional<int64_t> number_at(const pickle::Value& value, std::string_view key);

// Strips `prefix` in every dictionary whose keys all begin with it. Returns the number of those.
size_t strip_prefix(pickle::Value& value, std::string_view prefix);

}  // namespace cpprun::ctl

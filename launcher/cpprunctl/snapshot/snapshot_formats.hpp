// The two forms of a snapshot, and the way from one to the other: a folder with model.pt, optim.pt
// and rank-<r>.pt, and a single file with MODEL_STATE, OPTIMIZER_STATE, EPOCHS_RUN, RANKS and so on
// (docs/snapshots.md). Pure. Private to convert.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/pickle/value.hpp"

namespace cpprun::ctl {

// What the files of the folder form hold.
struct FolderFormat {
  pickle::Value model, optimizer;
  std::vector<pickle::Value> ranks;
};

// Error: the file is none of a snapshot.
Result<FolderFormat> to_folder(const pickle::Value& single);
pickle::Value to_single(const FolderFormat& folder);

// Where the model's tensors stand: MODEL_STATE of a single file, else the whole.
const pickle::Value& model_of(const pickle::Value& value);
// A whole number below a key of the file; nothing if it is not there.
std::optional<int64_t> number_at(const pickle::Value& value, std::string_view key);

// Every dictionary whose names all begin with `prefix` without it. Returns how many there were.
size_t strip_prefix(pickle::Value& value, std::string_view prefix);

}  // namespace cpprun::ctl

// Chooses the snapshot to resume from, given what each rank could load. Pure. Private to snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::snapshot {

// A snapshot that one rank found.
struct Candidate {
  enum class Where { InMemorySnapshot, Chosen, Folder };  // Chosen: by the launcher
  Where where = Where::Folder;
  int64_t step = 0;
  std::string id;    // the same on all ranks for the same save
  std::string why;   // not empty: the snapshot is damaged, for this reason
  std::string name;  // for messages: "step-30"
  bool operator==(const Candidate&) const = default;
};
using Candidates = std::vector<Candidate>;

std::string encode(const Candidates& candidates);
Result<Candidates> decode(std::string_view text);

struct Common {
  // Snapshots that all ranks can load, best first: memory if at least as new as the newest on disk,
  // then the launcher's choice, then the others from the newest on.
  Candidates loadable;
  // Snapshots that are damaged on some rank, each step once, newest first; `why` names the rank.
  Candidates damaged;
};
Common common(const std::vector<Candidates>& of_ranks);

// The message about `damaged`, which is not empty. `instead`: what is loaded; empty: nothing.
std::string damaged_text(Candidates damaged, const std::string& instead);

}  // namespace cpprun::snapshot

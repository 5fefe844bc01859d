// Which snapshot all ranks resume from: what each of them could load, put together. Pure. Private
// to snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::snapshot {

// What one rank could load.
struct Candidate {
  enum class Where {
    InMemorySnapshot,
    Chosen,
    Folder
  } where = Where::Folder;  // Chosen: by the launcher
  int64_t step = 0;
  std::string id;    // of the same save on all ranks
  std::string why;   // not empty: it is there, and damaged
  std::string name;  // for messages: "step-30"
  bool operator==(const Candidate&) const = default;
};
using Candidates = std::vector<Candidate>;

std::string encode(const Candidates& candidates);
Result<Candidates> decode(std::string_view text);

struct Common {
  // What all ranks can load, best first: memory if it is as new as the best on disk, then the
  // launcher's choice, then the newest.
  Candidates loadable;
  // What is damaged on some rank, each step once, newest first; `why` names the rank.
  Candidates damaged;
};
Common common(const std::vector<Candidates>& of_ranks);

}  // namespace cpprun::snapshot

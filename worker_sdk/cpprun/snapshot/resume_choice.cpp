#include "cpprun/snapshot/resume_choice.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "common/limits/snapshots.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::Tuple;
using pickle::Value;
using Where = Candidate::Where;

bool is_same(const Candidate& a, const Candidate& b) {
  return a.where == b.where && a.step == b.step && a.id == b.id;
}

bool is_on_all(const std::vector<Candidates>& of_ranks, const Candidate& candidate) {
  return std::ranges::all_of(of_ranks, [&](const Candidates& own) {
    return std::ranges::any_of(
        own, [&](const Candidate& each) { return is_same(each, candidate) && each.why.empty(); });
  });
}

Result<Candidate> decode_one(const Value& value) {
  const auto fields =
      pickle::unpack<int64_t, int64_t, std::string, std::string, std::string>(value);
  if (fields) {
    const auto [where, step, id, why, name] = *fields;
    if (*where >= 0 && *where <= 2)
      return Candidate{static_cast<Where>(*where), *step, *id, *why, *name};
  }
  return Error{ErrorKind::Protocol, "a rank's list of snapshots makes no sense"};
}

}  // namespace

std::string encode(const Candidates& candidates) {
  pickle::List list;
  for (const Candidate& each : candidates) {
    list.items.emplace_back(
        Tuple{{static_cast<int64_t>(each.where), each.step, each.id, each.why, each.name}});
  }
  return pickle::write(list);
}

Result<Candidates> decode(std::string_view text) {
  const Result<Value> value = pickle::read(text);
  if (!value) return value.error();
  const auto* list = value->get_if<pickle::List>();
  if (list == nullptr) return Error{ErrorKind::Protocol, "a rank's list of snapshots is none"};
  Candidates candidates;
  for (const Value& item : list->items) {
    Result<Candidate> one = decode_one(item);
    if (!one) return one.error();
    candidates.push_back(std::move(*one));
  }
  return candidates;
}

Common common(const std::vector<Candidates>& of_ranks) {
  Common all;
  std::set<int64_t> damaged_steps;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (Candidate each : of_ranks[rank]) {
      if (each.why.empty()) {
        if (rank == 0 && is_on_all(of_ranks, each)) all.loadable.push_back(std::move(each));
        continue;
      }
      if (!damaged_steps.insert(each.step).second) continue;
      if (of_ranks.size() > 1) each.why = "rank " + std::to_string(rank) + ": " + each.why;
      all.damaged.push_back(std::move(each));
    }
  }
  int64_t on_disk = -1;
  for (const Candidate& each : all.loadable) {
    if (each.where != Where::InMemorySnapshot) on_disk = std::max(on_disk, each.step);
  }
  std::erase_if(all.loadable, [&](const Candidate& each) {
    return each.where == Where::InMemorySnapshot && each.step < on_disk;
  });
  const auto by_merit = [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.where, -a.step) < std::tuple(b.where, -b.step);
  };
  std::ranges::stable_sort(all.loadable, by_merit);
  std::ranges::stable_sort(all.damaged, by_merit);
  return all;
}

std::string damaged_text(Candidates damaged, const std::string& instead) {
  std::string text;
  // Complete ones that could not be loaded come first.
  std::ranges::stable_partition(damaged, [](const Candidate& each) { return !each.id.empty(); });
  const size_t named = std::min(damaged.size(), limits::kDamagedNamed);
  for (size_t i = 0; i < named; ++i) {
    text += damaged[i].name + " can't be used (" + damaged[i].why + "); ";
  }
  if (named < damaged.size()) {
    text += "nor can " + std::to_string(damaged.size() - named) + " others; ";
  }
  const std::string count = damaged.size() == 1 ? "one" : std::to_string(damaged.size());
  return text + (instead.empty() ? "there is no other: training begins anew"
                                 : "fell back " + count + " to " + instead);
}

}  // namespace cpprun::snapshot

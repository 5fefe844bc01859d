#include "cpprun/snapshot/resume_choice.hpp"

#include <algorithm>
#include <tuple>

#include "snapshot_files/pickle/reader.hpp"
#include "snapshot_files/pickle/writer.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::Tuple;
using pickle::Value;
using Where = Candidate::Where;

bool is_same(const Candidate& a, const Candidate& b) {
  return a.where == b.where && a.step == b.step && a.id == b.id;
}

bool is_on_all(const std::vector<Candidates>& of_ranks, const Candidate& candidate) {
  return std::all_of(of_ranks.begin(), of_ranks.end(), [&](const Candidates& own) {
    return std::any_of(own.begin(), own.end(), [&](const Candidate& each) {
      return is_same(each, candidate) && each.why.empty();
    });
  });
}

Result<Candidate> decode_one(const Value& value) {
  const auto* tuple = value.get_if<Tuple>();
  if (tuple != nullptr && tuple->items.size() == 5) {
    const auto* where = tuple->items[0].get_if<int64_t>();
    const auto* step = tuple->items[1].get_if<int64_t>();
    const auto* id = tuple->items[2].get_if<std::string>();
    const auto* why = tuple->items[3].get_if<std::string>();
    const auto* name = tuple->items[4].get_if<std::string>();
    if (where && step && id && why && name && *where >= 0 && *where <= 2) {
      return Candidate{static_cast<Where>(*where), *step, *id, *why, *name};
    }
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
  if (list == nullptr) {
    return Error{ErrorKind::Protocol, "a rank's list of snapshots is none"};
  }
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
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (Candidate each : of_ranks[rank]) {
      if (each.why.empty()) {
        if (rank == 0 && is_on_all(of_ranks, each)) all.loadable.push_back(std::move(each));
        continue;
      }
      const bool is_known =
          std::any_of(all.damaged.begin(), all.damaged.end(),
                      [&](const Candidate& known) { return known.step == each.step; });
      if (is_known) continue;
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
  std::stable_sort(all.loadable.begin(), all.loadable.end(), by_merit);
  std::stable_sort(all.damaged.begin(), all.damaged.end(), by_merit);
  return all;
}

}  // namespace cpprun::snapshot

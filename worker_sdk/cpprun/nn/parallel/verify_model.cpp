#include "cpprun/nn/parallel/verify_model.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

#include "common/hash.hpp"
#include "cpprun/nn/parallel/sdk_ranks.hpp"

namespace cpprun::nn::parallel {
namespace {

// Number of earlier DistributedDataParallel objects of this group in this process; equal on all
// ranks, because they construct them in the same order. Groups of later rounds have stores of their
// own.
int next_number(const dist::ProcessGroup& group) {
  static std::mutex mutex;
  static std::map<std::weak_ptr<dist::ProcessGroup::State>, int, std::owner_less<>> made;
  const std::lock_guard lock(mutex);
  return made[group.state()]++;
}

std::string text_of(const Description& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

Description lines_of(const std::string& text) {
  Description lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class Keys {
 public:
  explicit Keys(int number) : prefix_("cpprun/ddp/" + std::to_string(number) + "/") {}
  std::string hash(int rank) const { return prefix_ + "hash/" + std::to_string(rank); }
  std::string text(int rank) const { return prefix_ + "text/" + std::to_string(rank); }

 private:
  std::string prefix_;
};

[[noreturn]] void report_missing(dist::Store& store, const Keys& keys,
                                 const std::vector<int>& ranks, const dist::ProcessGroup& group) {
  std::string missing;
  for (const int rank : ranks) {
    if (!store.check({keys.hash(rank)}))
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  throw dist::DistTimeoutError(
      "DistributedDataParallel: rank " + std::to_string(group.rank()) + " waited " +
      std::to_string(group.timeout().count()) + " ms for rank(s) " + missing +
      " to wrap their model; all ranks of the group must construct it, in the same order");
}

void wait_for_all(dist::Store& store, const Keys& keys, const std::vector<int>& ranks,
                  const dist::ProcessGroup& group) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(keys.hash(rank));
  try {
    store.wait(names, group.timeout());
  } catch (const dist::DistTimeoutError&) {
    report_missing(store, keys, ranks, group);
  }
}

std::vector<std::string> hashes(dist::Store& store, const Keys& keys,
                                const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(keys.hash(rank));
  return store.multi_get(names);
}

}  // namespace

std::string first_difference(const Description& a, int rank_a, const Description& b, int rank_b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto line_at = [](const auto& at, const Description& lines) {
    return at == lines.end() ? std::string("nothing more") : *at;
  };
  return "rank " + std::to_string(rank_a) + " has " + line_at(in_a, a) + ", rank " +
         std::to_string(rank_b) + " has " + line_at(in_b, b);
}

void verify_across_ranks(const dist::ProcessGroup& group, const Description& own) {
  const std::vector<int> ranks = sdk_ranks(group);
  if (ranks.size() < 2) return;
  const Keys keys(next_number(group));
  dist::Store store = group.store();
  const std::string text = text_of(own);
  // The text first, because ranks read it after they have seen the hash.
  store.set(keys.text(group.rank()), text);
  store.set(keys.hash(group.rank()), std::to_string(fnv1a(text)));
  wait_for_all(store, keys, ranks, group);
  const auto all = hashes(store, keys, ranks);
  const auto other =
      std::find_if(all.begin(), all.end(), [&](const auto& it) { return it != all.front(); });
  if (other == all.end()) return;
  const int first = ranks.front();
  const int second = ranks[static_cast<size_t>(other - all.begin())];
  throw dist::DistMismatchError("DistributedDataParallel: the ranks wrap different models: " +
                                first_difference(lines_of(store.get(keys.text(first))), first,
                                                 lines_of(store.get(keys.text(second))), second) +
                                "; build the same module with the same options on all ranks");
}

}  // namespace cpprun::nn::parallel

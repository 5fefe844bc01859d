#include "cpprun/nn/parallel/verify_model.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "common/hash.hpp"
#include "common/text.hpp"
#include "cpprun/dist/init/rank_key.hpp"

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

// Names of the keys that the ranks of one DistributedDataParallel set.
struct Keys {
  std::string prefix;
  std::string hash(int rank) const { return prefix + "hash/" + std::to_string(rank); }
  std::string text(int rank) const { return prefix + "text/" + std::to_string(rank); }
};

// The ranks of the group, ascending, that run this SDK. They set their keys when they register
// (dist/init/rank_registration.hpp), which is before the group forms: over NCCL in its first
// collective.
std::vector<int> sdk_ranks(const dist::ProcessGroup& group) {
  dist::Store store = group.store();
  std::vector<int> ranks(static_cast<size_t>(group.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::string> keys;
  for (const int rank : ranks) keys.push_back(dist::rank_key(rank));
  if (store.check(keys)) return ranks;  // one request instead of one per rank
  std::erase_if(ranks, [&](int rank) { return !store.check({keys[static_cast<size_t>(rank)]}); });
  return ranks;
}

// The hashes of all `ranks`. Waits for them within the group's timeout.
std::vector<std::string> hashes(const dist::ProcessGroup& group, const Keys& keys,
                                const std::vector<int>& ranks) {
  dist::Store store = group.store();
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(keys.hash(rank));
  try {
    store.wait(names, group.timeout());
  } catch (const dist::DistTimeoutError&) {
    std::vector<std::string> missing;
    for (const int rank : ranks) {
      if (!store.check({keys.hash(rank)})) missing.push_back(std::to_string(rank));
    }
    throw dist::DistTimeoutError(
        "DistributedDataParallel: rank " + std::to_string(group.rank()) + " waited " +
        std::to_string(group.timeout().count()) + " ms for rank(s) " + text::join(missing, ", ") +
        " to wrap their model; all ranks of the group must construct it, in the same order");
  }
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
  const Keys keys{"cpprun/ddp/" + std::to_string(next_number(group)) + "/"};
  dist::Store store = group.store();
  const std::string text = text::join(own, "\n");
  // The text first, because ranks read it after they have seen the hash.
  store.set(keys.text(group.rank()), text);
  store.set(keys.hash(group.rank()), std::to_string(fnv1a(text)));
  const auto all = hashes(group, keys, ranks);
  const auto other =
      std::find_if(all.begin(), all.end(), [&](const auto& it) { return it != all.front(); });
  if (other == all.end()) return;
  const int first = ranks.front();
  const int second = ranks[static_cast<size_t>(other - all.begin())];
  const auto lines_of = [&](int rank) { return text::split(store.get(keys.text(rank)), '\n'); };
  throw dist::DistMismatchError("DistributedDataParallel: the ranks wrap different models: " +
                                first_difference(lines_of(first), first, lines_of(second), second) +
                                "; build the same module with the same options on all ranks");
}

}  // namespace cpprun::nn::parallel

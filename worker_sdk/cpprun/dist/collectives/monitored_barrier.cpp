// monitored_barrier goes through the store, which knows the ranks that have arrived.
#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/debug_checks.hpp"

namespace cpprun::dist {
namespace {

// Other ranks wait this much longer than rank 0, so that they receive its decision.
constexpr std::chrono::milliseconds kDecisionGrace{5'000};
constexpr const char* kAllCame = "all";
// The barrier after the last one that timed out: a late rank, for which several may have, continues
// there.
constexpr const char* kNextAfterTimeout = "cpprun_barrier/next_after_timeout";

struct Keys {
  std::string arrived;         // + rank
  std::string missing_report;  // kAllCame or the missing ranks
};

Keys keys_of(uint64_t sequence) {
  const std::string prefix = "cpprun_barrier/" + std::to_string(sequence) + "/";
  return {prefix + "arrived/", prefix + "decision"};
}

// Deletes the keys of the barrier before `sequence`: all ranks have arrived, hence have read them.
void delete_previous_keys(c10d::Store& store, uint64_t sequence, int size) {
  if (sequence == 0) return;
  const Keys old = keys_of(sequence - 1);
  store.deleteKey(old.missing_report);
  for (int rank = 0; rank < size; ++rank) store.deleteKey(old.arrived + std::to_string(rank));
}

std::string decide(const Call& call, c10d::Store& store, uint64_t sequence,
                   std::chrono::milliseconds timeout, bool wait_all_ranks) {
  const Keys keys = keys_of(sequence);
  auto missing = missing_ranks(call, keys.arrived, timeout);
  if (!wait_all_ranks && missing.size() > 1) missing.resize(1);
  const std::string missing_report = missing.empty() ? kAllCame : listed(missing);
  translated(call.where(), [&] {
    if (!missing.empty()) store.set(kNextAfterTimeout, std::to_string(sequence + 1));
    store.set(keys.missing_report, missing_report);
    if (missing.empty()) delete_previous_keys(store, sequence, call.size());
  });
  return missing_report;
}

std::string missing_report_of(const Call& call, c10d::Store& store, const std::string& key,
                              std::chrono::milliseconds timeout) {
  try {
    return translated(call.where(), [&] {
      store.wait({key}, timeout + kDecisionGrace);
      return store.get_to_str(key);
    });
  } catch (const DistTimeoutError&) {
    return std::to_string(call.group()->ranks[0]);
  }
}

}  // namespace

void monitored_barrier(const ProcessGroup& group, std::optional<std::chrono::milliseconds> timeout,
                       bool wait_all_ranks) {
  const Call call("monitored_barrier", group);
  const auto limit = timeout.value_or(call.timeout());
  if (limit.count() <= 0) call.refuse("timeout is " + std::to_string(limit.count()) + " ms");
  const uint64_t sequence = call.group()->health.next_barrier();
  const auto store = native(ProcessGroup(call.group()).store());
  const Keys keys = keys_of(sequence);
  translated(call.where(), [&] {
    store->set(keys.arrived + std::to_string(call.rank()), std::vector<uint8_t>{1});
  });
  const std::string missing = call.rank() == 0
                                  ? decide(call, *store, sequence, limit, wait_all_ranks)
                                  : missing_report_of(call, *store, keys.missing_report, limit);
  if (missing == kAllCame) return;
  translated(call.where(), [&] {
    if (!store->check({kNextAfterTimeout})) return;  // rank 0 never came
    call.group()->health.skip_barriers_until(std::stoull(store->get_to_str(kNextAfterTimeout)));
  });
  throw DistTimeoutError(call.where() + ": missing rank(s): " + missing + ", after " +
                         std::to_string(limit.count()) + " ms");
}

}  // namespace cpprun::dist

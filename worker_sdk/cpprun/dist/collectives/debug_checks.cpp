// Exchanges fingerprints through the store, one key per rank and call.
#include "cpprun/dist/collectives/debug_checks.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>

#include "common/text.hpp"
#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/collectives.hpp"

namespace cpprun::dist {
namespace {

bool is_detail_level() {
  const char* value = std::getenv("TORCH_DISTRIBUTED_DEBUG");
  if (value == nullptr) return false;
  std::string text(value);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text == "DETAIL";
}

std::atomic<bool>& checks() {
  static std::atomic<bool> on{is_detail_level()};
  return on;
}

c10::intrusive_ptr<c10d::Store> store_of(const Call& call) {
  const std::lock_guard lock(call.group()->mutex);
  if (call.group()->store) return call.group()->store;
  throw DistStateError(call.where() + ": the group has no store any more");
}

std::string key_of(const std::string& prefix, size_t rank) { return prefix + std::to_string(rank); }

// The texts of all ranks, by rank in the group. Requires that all keys exist.
std::vector<std::string> read_all(const Call& call, const std::string& prefix) {
  const auto store = store_of(call);
  return translated(call.where(), [&] {
    std::vector<std::string> texts;
    for (size_t rank = 0; rank < call.group()->ranks.size(); ++rank) {
      texts.push_back(store->get_to_str(key_of(prefix, rank)));
    }
    return texts;
  });
}

// All ranks have reached the next call, so no rank reads this key any more. Ignores errors: the
// process that serves the store may have finished and exited.
void delete_key(c10d::Store& store, const std::string& key) {
  try {
    store.deleteKey(key);
  } catch (const std::exception&) {
    return;
  }
}

std::string global_rank(const Call& call, size_t rank) {
  return "rank " + std::to_string(call.group()->ranks[rank]);
}

struct RankText {
  size_t rank;  // in the group
  std::string text;
};

[[noreturn]] void differ(const Call& call, uint64_t sequence, const RankText& one,
                         const RankText& other) {
  throw DistMismatchError("ranks disagree in call " + std::to_string(sequence) + " of group " +
                          call.group()->name + ": " + global_rank(call, one.rank) + ": " +
                          one.text + "; " + global_rank(call, other.rank) + ": " + other.text);
}

// A value in the store: the text, a line of sent lengths, a line of received lengths.
constexpr char kLine = '\n', kNumber = ' ';

std::string line_of(const std::vector<int64_t>& numbers) {
  std::string line;
  for (const int64_t number : numbers) line += std::to_string(number) + kNumber;
  return line;
}

std::string encoded(const std::string& text, const Exchange& exchange) {
  if (exchange.sends.empty()) return text;
  return text + kLine + line_of(exchange.sends) + kLine + line_of(exchange.takes);
}

struct Fingerprint {
  std::string text;
  std::vector<std::string> sends, takes;
};

Fingerprint decoded(const std::string& value) {
  const auto lines = text::split(value, kLine);
  if (lines.size() != 3) return {value, {}, {}};
  return {lines[0], text::split(lines[1], kNumber), text::split(lines[2], kNumber)};
}

// All ranks compare the same texts in the same order, so all report the same difference.
void check_equal(const Call& call, uint64_t sequence, const std::vector<Fingerprint>& all) {
  for (size_t other = 1; other < all.size(); ++other) {
    if (all[other].text == all[0].text) continue;
    differ(call, sequence, {0, all[0].text}, {other, all[other].text});
  }
}

void check_exchange(const Call& call, uint64_t sequence, const std::vector<Fingerprint>& all) {
  if (all[0].sends.empty()) return;
  for (size_t from = 0; from < all.size(); ++from) {
    for (size_t to = 0; to < all.size(); ++to) {
      const std::string &sent = all[from].sends.at(to), &taken = all[to].takes.at(from);
      if (sent == taken) continue;
      differ(call, sequence,
             {from, all[from].text + " sends " + sent + " element(s) to " + global_rank(call, to)},
             {to, "takes " + taken + " from " + global_rank(call, from)});
    }
  }
}

}  // namespace

void set_debug_checks(bool on) { checks() = on; }
bool debug_checks() { return checks(); }

std::vector<int> missing_ranks(const Call& call, const std::string& prefix,
                               std::chrono::milliseconds timeout) {
  const auto store = store_of(call);
  std::vector<std::string> keys;
  for (size_t rank = 0; rank < call.group()->ranks.size(); ++rank) {
    keys.push_back(key_of(prefix, rank));
  }
  std::vector<int> missing;
  try {
    translated(call.where(), [&] { store->wait(keys, timeout); });
  } catch (const DistTimeoutError&) {
    for (size_t rank = 0; rank < keys.size(); ++rank) {
      if (!translated(call.where(), [&] { return store->check({keys[rank]}); })) {
        missing.push_back(call.group()->ranks[rank]);
      }
    }
  }
  return missing;
}

void compare_across_ranks(const Call& call, const std::string& text, const Exchange& exchange) {
  const uint64_t sequence = call.group()->health.next_comparison();
  const auto prefix_of = [](uint64_t number) {
    return "cpprun_compare/" + std::to_string(number) + "/";
  };
  const std::string prefix = prefix_of(sequence);
  const auto own = static_cast<size_t>(call.rank());
  const auto store = store_of(call);
  translated(call.where(), [&] { store->set(key_of(prefix, own), encoded(text, exchange)); });
  const auto missing = missing_ranks(call, prefix, call.timeout());
  if (!missing.empty()) {
    const std::string why = call.where() + ": missing rank(s): " + listed(missing) +
                            " did not come within " + std::to_string(call.timeout().count()) +
                            " ms to call " + std::to_string(sequence) + ", " + text;
    call.group()->health.mark_broken(why);
    throw DistTimeoutError(why);
  }
  std::vector<Fingerprint> all;
  for (const std::string& one : read_all(call, prefix)) all.push_back(decoded(one));
  if (sequence > 0) delete_key(*store, key_of(prefix_of(sequence - 1), own));
  check_equal(call, sequence, all);
  check_exchange(call, sequence, all);
}

}  // namespace cpprun::dist

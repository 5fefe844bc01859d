#include "agent/core/hangs/flight_traces.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "agent/core/hangs/hang_stacks.hpp"
#include "common/limits/agent.hpp"
#include "common/text.hpp"

namespace cpprun::agent {
namespace {

constexpr size_t kFields = 5;
constexpr size_t kShownRanks = 8;
constexpr size_t kTextBytes = 200;  // of a name in the dump

std::string clean_word(const std::string& text) { return text::one_line(text, kTextBytes); }

std::optional<TracedCollective> collective_of(const std::string& line) {
  const std::vector<std::string> fields = text::split(line, '\t');
  if (fields.size() != kFields) return std::nullopt;
  const std::optional<int64_t> sequence = text::parse_int(fields[1]);
  if (!sequence || *sequence < 0) return std::nullopt;
  return TracedCollective{clean_word(fields[0]), *sequence, clean_word(fields[2]),
                          clean_word(fields[3]), fields[4] == "over"};
}

// Of one group: what each rank has issued, by sequence number.
using Issued = std::map<int64_t, std::map<int64_t, const TracedCollective*>>;  // by rank

std::string operation_text(const TracedCollective& collective, bool with_sizes) {
  return with_sizes ? collective.operation + " of " + collective.sizes : collective.operation;
}

// Whether all ranks must give a collective the same sizes; in a gather or scatter they may differ.
bool has_equal_sizes(const std::string& operation) {
  return operation.find("all_reduce") != std::string::npos ||
         operation.find("allreduce") != std::string::npos ||
         operation.find("broadcast") != std::string::npos;
}

// The only rank that differs from a majority.
std::optional<Rank> odd_of(const std::map<std::string, std::vector<int64_t>>& by_text) {
  if (by_text.size() != 2) return std::nullopt;
  const auto& [one, other] = std::pair(by_text.begin()->second, by_text.rbegin()->second);
  if (one.size() == 1 && other.size() > 1) return Rank(one.front());
  if (other.size() == 1 && one.size() > 1) return Rank(other.front());
  return std::nullopt;
}

// The first sequence number at which ranks have issued different operations.
std::optional<TraceFinding> find_mismatch(const std::string& group, const Issued& issued) {
  std::map<int64_t, std::vector<std::pair<int64_t, const TracedCollective*>>> by_sequence;
  for (const auto& [rank, all] : issued) {
    for (const auto& [sequence, collective] : all)
      by_sequence[sequence].emplace_back(rank, collective);
  }
  for (const auto& [sequence, all] : by_sequence) {
    const bool with_sizes = std::ranges::all_of(
        all, [](const auto& item) { return has_equal_sizes(item.second->operation); });
    std::map<std::string, std::vector<int64_t>> by_text;
    for (const auto& [rank, collective] : all)
      by_text[operation_text(*collective, with_sizes)].push_back(rank);
    if (by_text.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [text, ranks] : by_text)
      parts.push_back(ranks_text(ranks, kShownRanks) + (ranks.size() == 1 ? " has" : " have") +
                      " issued " + text);
    return TraceFinding{"collective " + std::to_string(sequence) + " of the group " + group +
                            " differs: " + text::join(parts, ", "),
                        odd_of(by_text)};
  }
  return std::nullopt;
}

// Ranks that have issued fewer collectives than the one that is furthest ahead and waits.
std::optional<TraceFinding> find_laggards(const std::string& group, const Issued& issued) {
  const TracedCollective* newest = nullptr;
  for (const auto& [rank, all] : issued) {
    const TracedCollective* last = all.rbegin()->second;
    if (newest != nullptr && newest->sequence >= last->sequence) continue;
    newest = last;
  }
  if (newest == nullptr || newest->is_over) return std::nullopt;
  std::vector<int64_t> behind;
  std::vector<int64_t> there;
  std::string last_text;
  for (const auto& [rank, all] : issued) {
    const TracedCollective* last = all.rbegin()->second;
    if (last->sequence == newest->sequence) {
      there.push_back(rank);
      continue;
    }
    behind.push_back(rank);
    last_text = "; the last of rank " + std::to_string(rank) + " was " +
                std::to_string(last->sequence) + ", " + last->operation;
  }
  if (behind.empty()) return std::nullopt;
  TraceFinding finding;
  finding.text = ranks_text(behind, kShownRanks) + (behind.size() == 1 ? " has" : " have") +
                 " not come to collective " + std::to_string(newest->sequence) + ", " +
                 newest->operation + " of the group " + group + ", in which " +
                 ranks_text(there, kShownRanks) + (there.size() == 1 ? " waits" : " wait") +
                 last_text;
  if (behind.size() == 1) finding.odd = Rank(behind.front());
  return finding;
}

}  // namespace

std::vector<TracedCollective> parse_trace(std::string_view dump) {
  std::vector<TracedCollective> all;
  const std::vector<std::string> lines = text::split(dump, '\n');
  const size_t first =
      lines.size() > limits::kTraceEntries ? lines.size() - limits::kTraceEntries : 0;
  for (size_t i = first; i < lines.size(); ++i) {
    if (auto collective = collective_of(lines[i])) all.push_back(std::move(*collective));
  }
  return all;
}

TraceFinding compare_traces(const std::vector<RankTrace>& ranks) {
  std::map<std::string, Issued> groups;
  for (const RankTrace& rank : ranks) {
    for (const TracedCollective& collective : rank.collectives)
      groups[collective.group][rank.rank.value][collective.sequence] = &collective;
  }
  // A mismatch explains more than a rank that is behind, which may follow from it.
  for (const auto& [group, issued] : groups) {
    if (auto found = find_mismatch(group, issued)) return *found;
  }
  for (const auto& [group, issued] : groups) {
    if (auto found = find_laggards(group, issued)) return *found;
  }
  return {};
}

}  // namespace cpprun::agent

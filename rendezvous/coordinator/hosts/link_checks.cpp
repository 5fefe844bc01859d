#include "rendezvous/coordinator/hosts/link_checks.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "rendezvous/coordinator/rounds/ranking.hpp"

namespace cpprun {
namespace {

// Bytes per second, both directions together.
double rate_of(const control::LinkResult& result) {
  return static_cast<double>(result.bytes) / std::max(to_seconds(result.took), 1e-6);
}

std::string rate_text(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g MB/s", rate / 1e6);
  return text;
}

std::string name_of(Incarnation node, const NodeTable& nodes) {
  const Node* found = nodes.find(node);
  return found == nullptr ? "a node that has left" : found->id.name;
}

}  // namespace

bool LinkChecks::are_done(Instant now, const JobView& job, Effects& effects) {
  if (bytes_ == 0) return true;
  if (stage_ == Stage::None) {
    const std::set<Incarnation>& ready = job.nodes.ready();
    const bool is_known = std::ranges::includes(checked_, ready);
    if (is_known || passes_ == limits::kLinkCheckPasses) return true;
    ++passes_;
    std::vector<Incarnation> able;
    std::ranges::copy_if(ready, std::back_inserter(able),
                         [&](Incarnation node) { return job.nodes.at(node).facts.link_port != 0; });
    begin(now, Stage::Neighbours, neighbours_of(able), job, effects);
  }
  if (now < deadline_ && !are_results_complete(job.nodes)) return false;
  if (stage_ == Stage::Neighbours) {
    if (const std::vector<Pair> pairs = isolate(job.nodes, effects); !pairs.empty()) {
      begin(now, Stage::Isolation, pairs, job, effects);
      if (!are_results_complete(job.nodes)) return false;
    }
  }
  if (stage_ == Stage::Isolation) conclude(job, effects);
  end(now, job.nodes);
  return true;
}

std::vector<LinkChecks::Pair> LinkChecks::neighbours_of(const std::vector<Incarnation>& nodes) {
  std::vector<Pair> pairs;
  const size_t size = nodes.size();
  const size_t in_pairs = size % 2 == 0 || size < 3 ? size : size - 3;
  for (size_t i = 0; i + 1 < in_pairs; i += 2) pairs.push_back({nodes[i], nodes[i + 1]});
  for (size_t i = in_pairs; i < size && size > 1; ++i) {
    pairs.push_back({nodes[i], nodes[i + 1 < size ? i + 1 : in_pairs]});
  }
  return pairs;
}

void LinkChecks::begin(Instant now, Stage stage, const std::vector<Pair>& pairs, const JobView& job,
                       Effects& effects) {
  stage_ = stage;
  deadline_ = now + limits::kLinkCheckTimeout + limits::kLinkCheckReplyWait;
  pairs_.clear();
  std::vector<Node*> all;
  for (auto& [incarnation, node] : job.nodes) all.push_back(&node);
  for (const Pair& pair : pairs) {
    const Node* from = job.nodes.find(pair.from);
    const Node* to = job.nodes.find(pair.to);
    if (from == nullptr || to == nullptr || !from->is_connected()) continue;
    pairs_.emplace(next_number_, pair);
    send(*from,
         control::CheckLink{next_number_++,
                            {reachable_address(*to, all), to->facts.link_port},
                            to->facts.link_secret,
                            bytes_},
         effects);
  }
}

void LinkChecks::take(const Node& node, const control::LinkResult& result) {
  const auto found = pairs_.find(result.number);
  if (found == pairs_.end() || found->second.from != node.id.incarnation) return;
  if (!found->second.result) found->second.result = result;
}

// A node that is gone, or connects again, sends none: then nothing is known, and none is
// suspected.
bool LinkChecks::are_results_complete(const NodeTable& nodes) const {
  return std::ranges::all_of(pairs_, [&](const auto& entry) {
    const Node* from = nodes.find(entry.second.from);
    return entry.second.result || from == nullptr || !from->is_connected();
  });
}

LinkChecks::Quality LinkChecks::quality_of(const Pair& pair) const {
  if (!pair.result) return Quality::Unknown;
  if (!pair.result->why.empty()) return Quality::Failed;
  const bool is_slow = rate_of(*pair.result) * limits::kSlowLinkFactor < median_rate_;
  return is_slow ? Quality::Slow : Quality::Good;
}

std::string LinkChecks::why(const Pair& pair, Quality quality, const NodeTable& nodes) const {
  const std::string what =
      quality == Quality::Slow
          ? rate_text(rate_of(*pair.result)) + ", the median is " + rate_text(median_rate_)
          : pair.result->why;
  return name_of(pair.from, nodes) + " to " + name_of(pair.to, nodes) + ": " + what;
}

std::vector<LinkChecks::Pair> LinkChecks::isolate(const NodeTable& nodes, Effects& effects) {
  std::vector<double> rates;
  for (const auto& [number, pair] : pairs_) {
    if (pair.result && pair.result->why.empty()) rates.push_back(rate_of(*pair.result));
  }
  std::ranges::sort(rates);
  median_rate_ = rates.size() < limits::kLinksForMedian ? 0 : rates[rates.size() / 2];
  std::set<Incarnation> proven;
  for (const auto& [number, pair] : pairs_) {
    if (quality_of(pair) == Quality::Good) proven.insert({pair.from, pair.to});
  }
  std::vector<std::string> failures;
  for (const auto& [number, pair] : pairs_) {
    const Quality quality = quality_of(pair);
    if (quality == Quality::Good || quality == Quality::Unknown) continue;
    failures.push_back(why(pair, quality, nodes));
    const Suspect suspects[] = {{quality, pair.to, failures.back()},
                                {quality, pair.from, failures.back()}};
    if (!proven.contains(pair.from)) suspects_.emplace(pair.from, suspects[0]);
    if (!proven.contains(pair.to)) suspects_.emplace(pair.to, suspects[1]);
  }
  if (proven.empty() && !failures.empty()) {
    log_warning(effects, "link_check",
                "no link of " + text::count(failures.size(), "pair") +
                    " of nodes has passed its check, so it is not known which node is at fault; "
                    "the round forms: " +
                    failures.front());
    suspects_.clear();
  }
  const std::vector<Incarnation> partners(proven.begin(), proven.end());
  std::vector<Pair> pairs;
  for (const auto& [node, suspect] : suspects_) {
    size_t choice = pairs.size() % partners.size();
    if (partners[choice] == suspect.partner) choice = (choice + 1) % partners.size();
    pairs.push_back({node, partners[choice]});
  }
  return pairs;
}

void LinkChecks::conclude(const JobView& job, Effects& effects) {
  std::map<Incarnation, Quality> second;
  for (const auto& [number, pair] : pairs_) second[pair.from] = quality_of(pair);
  for (const auto& [number, pair] : pairs_) {
    const Suspect& suspect = suspects_.at(pair.from);
    const Quality again = second.at(pair.from);
    Node* node = job.nodes.find(pair.from);
    if (node == nullptr || again == Quality::Unknown) continue;
    if (again == Quality::Good) {
      const auto partner = second.find(suspect.partner);
      const bool is_pair = partner != second.end() && partner->second == Quality::Good;
      const bool has_failed = suspect.quality == Quality::Failed;
      if (has_failed && is_pair && pair.from < suspect.partner)
        separate(*node, suspect, job, effects);
      continue;
    }
    const std::string what = suspect.why + "; " + why(pair, again, job.nodes);
    if (suspect.quality == Quality::Failed && again == Quality::Failed) {
      leave_out(*node, what, job, effects);
    } else {
      log_warning(effects, "link_check",
                  "the network link of " + node->id.name + " is slow: " + what);
      job.hosts.note_slow(node->id.name, what);
    }
  }
}

// Two nodes that do not reach each other, and reach others: only one of both can take part, if
// there are enough nodes.
void LinkChecks::separate(Node& node, const Suspect& suspect, const JobView& job,
                          Effects& effects) {
  log_warning(effects, "link_check", "both nodes reach others, but not each other: " + suspect.why);
  const bool has_spare = job.nodes.ready_count() > job.max_nodes;
  if (has_spare) leave_out(node, suspect.why, job, effects);
}

void LinkChecks::leave_out(Node& node, const std::string& why, const JobView& job,
                           Effects& effects) {
  node.link_failure = why;
  job.nodes.update_ready(node);
  if (!failed_.insert(node.id.incarnation).second) return;  // counted and reported already
  const std::string& name = node.id.name;
  log_warning(effects, "link_check",
              "the network link of " + name + " has failed its check: " + why);
  if (job.hosts.count(name, HostFault::FailedCheck, "network link: " + why)) {
    excluded_.push_back(name);
  }
}

void LinkChecks::end(Instant now, const NodeTable& nodes) {
  cancel();
  checked_ = nodes.ready();
  std::erase_if(failed_, [&](Incarnation node) {
    return nodes.find(node) == nullptr || checked_.contains(node);
  });
  if (!failed_.empty()) retry_at_ = now + limits::kNodeCheckRetryInterval;
}

void LinkChecks::cancel() {
  stage_ = Stage::None;
  pairs_.clear();
  suspects_.clear();
}

void LinkChecks::restart(NodeTable& nodes) {
  cancel();
  retry_at_ = Instant::never();
  passes_ = 0;
  checked_.clear();
  for (auto& [incarnation, node] : nodes) {
    if (std::exchange(node.link_failure, "").empty()) continue;
    nodes.update_ready(node);
  }
}

}  // namespace cpprun

// Thousands of random lives of a job: agents come, are killed, frozen, cut off, signalled; workers
// fail. Then the faults stop, and the job must end, the same for all, in bounded time.
//
// A failure names its seed; CPPRUN_MODEL_SEED=<n> runs that one alone and tells its story,
// CPPRUN_MODEL_SEEDS=<n> runs that many.
#include <cstdlib>
#include <map>

#include "tests/unit/support_cluster.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using cluster::Cluster;
using cluster::ClusterOptions;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 100;
#else
constexpr uint64_t kSeeds = 1000;
#endif

ClusterOptions options_of(uint64_t seed) {
  std::mt19937_64 random(seed);
  ClusterOptions made;
  made.seed = seed;
  made.max_nodes = 1 + static_cast<int64_t>(random() % 5);
  made.min_nodes = 1 + static_cast<int64_t>(random()) % made.max_nodes;
  if (made.min_nodes < 1) made.min_nodes = 1;
  made.max_restarts = static_cast<int64_t>(random() % 6);
  made.lease = random() % 2 == 0 ? Duration(1s) : Duration(5s);
  made.is_first_embedded = random() % 2 == 0;
  made.worker_fails = random() % 3 == 0 ? 0.0 : 0.15;
  return made;
}

class Life {
 public:
  explicit Life(uint64_t seed, bool is_traced = false) : cluster_(options_of(seed)) {
    cluster_.is_traced = is_traced;
  }

  void run() {
    const ClusterOptions& o = cluster_.options;
    for (int64_t i = 0; i < o.max_nodes; ++i) arrive_in(cluster_.random_time(2s));
    Instant faults_end = cluster_.now + 2s + cluster_.random_time(13s);
    plan_fault(faults_end);
    while (cluster_.step(faults_end)) {
    }
    heal_all();
    judge_liveness(faults_end);
  }

  const Checks& checks() const { return cluster_.checks; }
  int64_t rounds() const { return cluster_.rounds_started; }

 private:
  using Node = cluster::Node;

  void arrive_in(Duration delay) {
    cluster_.at(cluster_.now + delay, [this] { cluster_.add_node(); });
  }

  void plan_fault(Instant end) {
    Instant next = cluster_.now + cluster_.random_time(1500ms);
    if (next >= end) return;
    cluster_.at(next, [this, end] {
      if (!cluster_.nodes.empty()) fault(*cluster_.some_node());
      plan_fault(end);
    });
  }

  void fault(Node& node) {
    bool is_embedded = cluster_.options.is_first_embedded && node.id.incarnation.value == 1;
    if (!node.is_alive || node.finish) return arrive_in(1ms);
    double dice = cluster_.chance();
    if (dice < 0.35) return cluster_.break_connection(node);
    if (dice < 0.45) return arrive_in(1ms);
    if (is_embedded) return;
    if (dice < 0.60) {
      cluster_.kill(node);
      return arrive_in(cluster_.random_time(2s));
    }
    if (dice < 0.75) {
      cluster_.freeze(node);
      return later([this, &node] { cluster_.thaw(node); });
    }
    if (dice < 0.95) {
      cluster_.cut(node);
      return later([this, &node] { cluster_.heal(node); });
    }
    cluster_.signal(node);
  }

  void later(std::function<void()> what) {
    cluster_.at(cluster_.now + cluster_.random_time(8s), std::move(what));
  }

  void heal_all() {
    cluster_.has_faults = false;
    for (auto& node : cluster_.nodes) {
      cluster_.heal(*node);
      cluster_.thaw(*node);
    }
  }

  bool is_waiting(const Node& node) const { return node.is_alive && !node.finish; }

  // L1, L2: who can go on does so at once, who can't ends at the join timeout.
  void judge_liveness(Instant faults_end) {
    bool is_undecided = true;
    std::map<Incarnation, Epoch> here;  // who knocks after the end begins another job
    for (auto& node : cluster_.nodes) {
      bool is_leaving = node->core->state() == agent::Agent::State::Leaving;
      bool is_here = is_waiting(*node) && node->epoch > Epoch() && !is_leaving;
      if (is_here) here[node->id.incarnation] = node->epoch;
      is_undecided = is_undecided && !node->finish;
    }
    while (cluster_.step(faults_end + 150s)) {
    }
    bool must_go_on =
        is_undecided && static_cast<int64_t>(here.size()) >= cluster_.options.min_nodes;
    for (auto& node : cluster_.nodes) {
      if (!node->is_alive) continue;
      std::string name = "node " + std::to_string(node->id.incarnation.value);
      cluster_.checks.require(node->finish.has_value(), name + " waits for ever");
      auto was = here.find(node->id.incarnation);
      bool is_same_job = was != here.end() && was->second == node->epoch;
      if (!node->finish || !must_go_on || !is_same_job) continue;
      bool is_good = node->finish->how != agent::Finish::How::Error;
      cluster_.checks.require(is_good, name + " gave up: " + node->finish->text);
    }
  }

  Cluster cluster_;
};

void expect_good_life(uint64_t seed, int64_t& rounds, bool is_traced = false) {
  Life life(seed, is_traced);
  life.run();
  rounds += life.rounds();
  if (life.checks().broken().empty()) return;
  std::string all;
  for (const std::string& what : life.checks().broken()) all += "\n  " + what;
  ADD_FAILURE() << "CPPRUN_MODEL_SEED=" << seed << all;
}

TEST(MembershipModel, RandomLives) {
  int64_t rounds = 0;
  uint64_t seeds = kSeeds;
  if (const char* many = std::getenv("CPPRUN_MODEL_SEEDS"))
    seeds = std::strtoull(many, nullptr, 10);
  if (const char* only = std::getenv("CPPRUN_MODEL_SEED")) {
    expect_good_life(std::strtoull(only, nullptr, 10), rounds, true);
    return;
  }
  for (uint64_t seed = 1; seed <= seeds; ++seed) expect_good_life(seed, rounds);
  EXPECT_GT(rounds, static_cast<int64_t>(seeds)) << "the lives are too quiet to show anything";
}

}  // namespace
}  // namespace cpprun::test

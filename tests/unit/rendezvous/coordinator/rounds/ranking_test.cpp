// Predictable ranks, rank ranges of a world, and its addresses.
#include "rendezvous/coordinator/rounds/ranking.hpp"
#include "common/limits/rendezvous.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

struct NodeCase {
  std::string name;
  std::optional<int64_t> group_rank = {};
  std::optional<int64_t> node_rank = {};
  int64_t nproc = 1;
  std::string role = "default";
};

class Ranking : public testing::Test {
 protected:
  void given(const std::vector<NodeCase>& cases) {
    for (const NodeCase& c : cases) {
      Node node;
      node.id.name = c.name;
      node.group_rank = c.group_rank;
      node.facts.node_rank = c.node_rank;
      node.facts.nproc = c.nproc;
      node.facts.role = c.role;
      node.arrival = static_cast<int64_t>(nodes.size());
      node.session_addresses.local_address = "10.0.0.1";
      nodes.push_back(node);
    }
  }
  std::vector<Node*> all() {
    std::vector<Node*> pointers;
    for (Node& node : nodes) pointers.push_back(&node);
    return pointers;
  }
  // The ranks do not depend on the order of arrival.
  std::string ranked(int64_t max = 100, bool has_fixed_ranks = false) {
    std::string first = names(rank_nodes(all(), max, has_fixed_ranks));
    std::mt19937 random(1);
    for (int i = 0; i < 20; ++i) {
      std::vector<Node*> shuffled = all();
      std::shuffle(shuffled.begin(), shuffled.end(), random);
      EXPECT_EQ(names(rank_nodes(shuffled, max, has_fixed_ranks)), first);
    }
    return first;
  }
  static std::string names(const std::vector<Node*>& list) {
    std::string text;
    for (const Node* node : list) text += (text.empty() ? "" : " ") + node->id.name;
    return text;
  }

  std::vector<Node> nodes;
};

TEST_F(Ranking, NaturalOrderOfHostNames) {
  given({{"n10"}, {"n9"}, {"n1"}, {"m20"}});
  EXPECT_EQ(ranked(), "m20 n1 n9 n10");
}

TEST_F(Ranking, ThePreviousRankComesFirst) {
  given({{"a"}, {"b", 1}, {"c", 0}});
  EXPECT_EQ(ranked(), "c b a");
}

TEST_F(Ranking, ThenTheGivenNodeRank) {
  given({{"a", {}, 7}, {"b"}, {"c", {}, 2}, {"d", 5}});
  EXPECT_EQ(ranked(), "d c a b");
}

TEST_F(Ranking, ThenTheOrderOfArrival) {
  given({{"same"}, {"same"}, {"same"}});
  std::vector<Node*> order = rank_nodes(all(), 9, false);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(order[i]->arrival, static_cast<int64_t>(i));
}

TEST_F(Ranking, FixedRanksAreTheNodeRanks) {
  given({{"a", 0, 2}, {"b", 1, 1}, {"c", 2, 0}});
  EXPECT_EQ(ranked(3, true), "c b a");
}

TEST_F(Ranking, SparesComeLast) {
  given({{"a"}, {"b", 1}, {"c", 0}, {"d", {}, 0}});
  EXPECT_EQ(ranked(2), "c b");
}

TEST_F(Ranking, EqualsASlowReferenceImplementation) {
  std::mt19937 random(4);
  for (int run = 0; run < 300; ++run) {
    nodes.clear();
    std::vector<NodeCase> cases;
    for (size_t i = 0; i < 1 + random() % 8; ++i) {
      NodeCase c{"n" + std::to_string(random() % 12)};
      if (random() % 2 == 0) c.group_rank = random() % 4;
      if (random() % 2 == 0) c.node_rank = random() % 4;
      cases.push_back(c);
    }
    given(cases);
    std::vector<Node*> twin = all();
    std::stable_sort(twin.begin(), twin.end(), [](const Node* a, const Node* b) {
      auto key = [](const Node* n) {
        return std::tuple(n->group_rank.value_or(99), n->facts.node_rank.value_or(99),
                          std::stoi(n->id.name.substr(1)), n->arrival);
      };
      return key(a) < key(b);
    });
    EXPECT_EQ(names(rank_nodes(all(), 100, false)), names(twin));
  }
}

TEST_F(Ranking, RangesOfUnequalNodesAndRoles) {
  given({{"a", {}, {}, 3, "trainer"}, {"b", {}, {}, 1, "reader"}, {"c", {}, {}, 2, "trainer"}});
  std::vector<RankRange> rank_ranges = assign_ranks(all());
  EXPECT_EQ(rank_ranges[0].base_rank, 0);
  EXPECT_EQ(rank_ranges[1].base_rank, 3);
  EXPECT_EQ(rank_ranges[2].base_rank, 4);
  for (const RankRange& rank_range : rank_ranges) EXPECT_EQ(rank_range.world_size, 6);
  EXPECT_EQ(rank_ranges[0].role_world_size, 5);
  EXPECT_EQ(rank_ranges[1].role_world_size, 1);
  EXPECT_EQ(rank_ranges[1].base_role_rank, 0);
  EXPECT_EQ(rank_ranges[2].base_role_rank, 3);
}

TEST_F(Ranking, LoopbackIsFineOnASingleHost) {
  given({{"a"}, {"b"}});
  for (Node& node : nodes) {
    node.session_addresses.local_address = "127.0.0.1";
    node.facts.addresses = {"127.0.0.1"};
  }
  EXPECT_EQ(reachable_address(nodes[0], all()), "127.0.0.1");
  EXPECT_EQ(coordinator_address(all()), "127.0.0.1");
  nodes[0].facts.addresses.clear();
  EXPECT_EQ(reachable_address(nodes[0], all()), "127.0.0.1");
}

TEST_F(Ranking, LoopbackIsNotUsedWithARemotePeer) {
  given({{"host"}, {"far"}});
  nodes[0].session_addresses.local_address = "127.0.0.1";
  nodes[0].facts.addresses = {"127.0.0.1"};
  nodes[1].session_addresses.local_address = "10.0.0.1";
  nodes[1].facts.addresses = {"10.0.0.2"};
  EXPECT_EQ(reachable_address(nodes[0], all()), "10.0.0.1") << "where the peer reached us";
  EXPECT_EQ(reachable_address(nodes[1], all()), "10.0.0.2");
  EXPECT_EQ(coordinator_address(all()), "10.0.0.1");
  nodes[0].facts.addresses = {"::1", "::ffff:127.0.0.1", "192.168.0.7"};
  EXPECT_EQ(reachable_address(nodes[0], all()), "192.168.0.7");
}

TEST_F(Ranking, LocalAddrBeatsAll) {
  given({{"a"}, {"b"}});
  nodes[0].facts.addresses = {"10.0.0.2"};
  nodes[0].facts.local_addr = "fd00::2";
  EXPECT_EQ(reachable_address(nodes[0], all()), "fd00::2");
}

// ---------------------------------------------------------------- over rounds

TEST_F(JobTest, Ranks_StayWhenANodeIsReplaced) {
  nodes(3, 3);
  for (const char* name : {"n10", "n2", "n1"}) join(name);
  expect_assignment("n1", 1, 0, 6);
  expect_assignment("n2", 1, 1, 6);
  expect_assignment("n10", 1, 2, 6);
  dies("n1");
  sends_stopped("n2");
  sends_stopped("n10");
  passes(limits::kDeathGrace);
  join("n0");  // its name sorts first, yet the others keep their order
  expect_assignment("n2", 2, 0, 6);
  expect_assignment("n10", 2, 1, 6);
  expect_assignment("n0", 2, 2, 6);
}

TEST_F(JobTest, Ranks_UnequalNodesAndRolesReachTheAssignment) {
  player("a").facts.nproc = 4;
  player("a").facts.role = "trainer";
  player("b").facts.role = "reader";
  join("a");
  join("b");
  EXPECT_EQ(assignment("b").base_rank, 4);
  EXPECT_EQ(assignment("b").world_size, 6);
  EXPECT_EQ(assignment("b").role_world_size, 2);
  EXPECT_EQ(assignment("b").base_role_rank, 0);
  EXPECT_EQ(assignment("a").role_world_size, 4);
}

TEST_F(JobTest, Ranks_TheMasterIsRankZeroWithItsReservedPort) {
  join("b");
  join("a");
  EXPECT_EQ(assignment("b").master_addr, player("a").facts.addresses[0]);
  EXPECT_EQ(assignment("b").master_port, player("a").facts.reserved_port);
  sends_failed("a");
  player("a").facts.reserved_port = 45678;  // a fresh one each round
  sends_stopped("a");
  sends_stopped("b");
  EXPECT_EQ(assignment("b").master_port, 45678);
}

TEST_F(JobTest, Ranks_WithTheAgentsStoreTheMasterIsTheCoordinator) {
  job_spec.is_agent_store = true;
  join("a");
  join("b");
  EXPECT_EQ(assignment("a").master_addr, "10.0.0.1");
  EXPECT_EQ(assignment("a").master_port, assignment("a").store_port);
  EXPECT_TRUE(assignment("a").is_agent_store);
}

TEST_F(JobTest, Ranks_AFixedMasterIsPassedOn) {
  job_spec.master_addr = "head.cluster";
  job_spec.master_port = 29501;
  join("a");
  join("b");
  EXPECT_EQ(assignment("b").master_addr, "head.cluster");
  EXPECT_EQ(assignment("b").master_port, 29501);
}

TEST_F(Ranking, NewNodesFillGaps) {
  given({{"a", 0}, {"c", 2}, {"new"}});
  EXPECT_EQ(ranked(), "a c new");
  EXPECT_EQ(names(keep_previous_ranks(rank_nodes(all(), 100, false))), "a new c");
  EXPECT_EQ(names(keep_previous_ranks(rank_nodes(all(), 2, false))), "a c")
      << "fewer: no place is kept";
}

TEST_F(Ranking, TheFirstOfTwoWithOneRankKeepsIt) {
  given({{"b", 1}, {"a", 1}, {"c", 7}, {"new"}});
  EXPECT_EQ(names(keep_previous_ranks(rank_nodes(all(), 100, false))), "b a c new");
  EXPECT_TRUE(keep_previous_ranks({}).empty());
}

}  // namespace
}  // namespace cpprun::test

// What agents do when `scontrol show job` shows that the node of the batch script is lost.
#include "agent/core/lost_batch_host.hpp"

#include <gtest/gtest.h>

namespace cpprun::agent {
namespace {

using What = RequeueAdvice::What;

ClusterConfig agent_on(const std::string& node) {
  ClusterConfig cluster;
  cluster.kind = ClusterConfig::Kind::Slurm;
  cluster.job_id = "7";
  cluster.restarts = 1;
  cluster.step_nodes = {"n1", "n2", "n3", "n4"};
  cluster.node_name = node;
  cluster.requeues_max = 3;
  return cluster;
}

// As Slurm 22.05 prints it, shortened.
std::string shown(const std::string& nodes, const std::string& batch_host = "n1",
                  const std::string& state = "RUNNING", const std::string& restarts = "1") {
  return "JobId=7 JobName=train\n   JobState=" + state +
         " Reason=None Dependency=(null)\n   Requeue=1 Restarts=" + restarts +
         " BatchFlag=1 Reboot=0 ExitCode=0:0\n   ReqNodeList=(null) ExcNodeList=(null)\n   "
         "NodeList=" +
         nodes + "\n   BatchHost=" + batch_host + "\n   NumNodes=3 NumCPUs=3\n";
}

What advice(const std::string& node, const std::string& answer, int min_nodes = 2) {
  return requeue_advice(agent_on(node), min_nodes, answer).what;
}

TEST(LostBatchHost, TheFirstNodeThatIsLeftAsks) {
  EXPECT_EQ(advice("n2", shown("n[2-4]")), What::Requeue);
  EXPECT_EQ(advice("n3", shown("n[2-4]")), What::Wait);
  EXPECT_EQ(advice("n3", shown("n[3-4]"), 3), What::Requeue);
  EXPECT_NE(requeue_advice(agent_on("n2"), 2, shown("n[2-4]")).why.find("n1"), std::string::npos);
}

TEST(LostBatchHost, NobodyAsksWhileTheBatchHostIsInTheJob) {
  EXPECT_EQ(advice("n2", shown("n[1-4]")), What::Wait);
  EXPECT_EQ(advice("n2", shown("n[1,3-4]")), What::Wait);
}

TEST(LostBatchHost, NobodyAsksIfTheLostNodesCouldTrain) {
  EXPECT_EQ(advice("n2", shown("n[2-4]"), 1), What::GiveUp);
  EXPECT_EQ(advice("n3", shown("n[3-4]"), 2), What::GiveUp);
  const std::string why = requeue_advice(agent_on("n2"), 1, shown("n[2-4]")).why;
  EXPECT_NE(why.find("scontrol requeue 7"), std::string::npos) << why;
}

TEST(LostBatchHost, AnotherRunOfTheJobIsNotThisOne) {
  EXPECT_EQ(advice("n2", shown("n[2-4]", "n1", "PENDING")), What::Wait);
  EXPECT_EQ(advice("n2", shown("n[2-4]", "n1", "RUNNING", "2")), What::Wait);
  ClusterConfig other = agent_on("n2");
  other.job_id = "8";
  EXPECT_EQ(requeue_advice(other, 2, shown("n[2-4]")).what, What::Wait);
}

TEST(LostBatchHost, AnAnswerWithoutStatesChangesNothing) {
  for (const char* text : {"", "slurm_load_jobs error: Unable to contact slurm controller",
                           "JobId=7 JobState=RUNNING Restarts=1 NodeList=n[ BatchHost=n1"}) {
    EXPECT_EQ(advice("n2", text), What::Wait) << text;
  }
}

TEST(LostBatchHost, AJobWithoutABatchScriptCannotBeRequeued) {
  EXPECT_EQ(advice("n2", "JobId=7 JobState=RUNNING Restarts=1 BatchFlag=0 NodeList=n[2-4]"),
            What::GiveUp);
}

TEST(LostBatchHost, OnlyNodesNearTheFrontOfAJobThatMayBeRequeuedWatch) {
  EXPECT_FALSE(may_ask_for_requeue(agent_on("n1"))) << "the batch script runs there";
  EXPECT_TRUE(may_ask_for_requeue(agent_on("n2")));
  EXPECT_FALSE(may_ask_for_requeue(agent_on("elsewhere")));
  ClusterConfig often = agent_on("n2");
  often.requeues_max = 1;
  EXPECT_FALSE(may_ask_for_requeue(often)) << "it has been requeued as often as allowed";
  often.requeues_max.reset();
  EXPECT_FALSE(may_ask_for_requeue(often));
  ClusterConfig large = agent_on("n900");
  large.step_nodes.clear();
  for (int i = 1; i <= 1000; ++i) large.step_nodes.push_back("n" + std::to_string(i));
  EXPECT_FALSE(may_ask_for_requeue(large));
}

}  // namespace
}  // namespace cpprun::agent

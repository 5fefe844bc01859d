// The output of cpprunctl explain for command lines.
#include "launcher/cpprunctl/explain/explain.hpp"

#include <gmock/gmock.h>

#include "common/text.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string explained(const Strings& options) { return ctl::explanation(config_of(line(options))); }

TEST(Explanation, OfOneNode) {
  const std::string text = explained({"--standalone", "--nproc_per_node=2"});
  EXPECT_THAT(text, HasSubstr("train.py\nworkers     1 node x 2 = 2\n"));
  EXPECT_THAT(text, HasSubstr("rendezvous  on this machine, at a free port of loopback, job id"));
  EXPECT_THAT(text, HasSubstr("TORCHELASTIC_USE_AGENT_STORE=False"));
  EXPECT_THAT(text, Not(HasSubstr("agents of torchrun")));
}

TEST(Explanation, OfTheAgentsStoreAtAGivenPort) {
  const std::string text =
      explained({"--master-port=29711", "--worker-store=agent", "--max-restarts=1"});
  EXPECT_THAT(text, HasSubstr("rendezvous  static at 127.0.0.1:29711, job id"));
  EXPECT_THAT(text, HasSubstr("store       cpprun serves MASTER_PORT\n"));
  EXPECT_THAT(text, HasSubstr("a new, empty store, at the port that was asked for"));
}

TEST(Explanation, OfManyNodes) {
  const std::string text =
      explained({"--nnodes=2:4", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:77", "--rdzv-id=j",
                 "--max-restarts=3", "--snapshot-dir=/scratch", "--log-dir=/tmp"});
  EXPECT_THAT(text, HasSubstr("rendezvous  c10d at n1:77, job id \"j\"\n"));
  EXPECT_THAT(text, HasSubstr("restarts    3 after failures of workers, over all nodes, from the "
                              "newest snapshot in /scratch\n"));
  EXPECT_THAT(text, HasSubstr("logs        /tmp\n"));
  EXPECT_THAT(text, HasSubstr("agents of torchrun can't take part"));
}

Result<ctl::LauncherCommand> typed(const std::string& line) {
  return ctl::read_launcher_command(text::split(line, ' '));
}

TEST(LauncherCommand, RecognizesLaunchersBeforeTheOptions) {
  for (const char* before :
       {"", "-- ", "cpprun ", "torchrun ", "/x/.venv/bin/torchrun ", "./cpprun ", "env torchrun ",
        "python -m torch.distributed.run ", "/usr/bin/python3.11 -u -m torch.distributed.run ",
        "srun -N 2 --ntasks-per-node=1 torchrun ", "srun python3 -m torch.distributed.run "}) {
    const Result<ctl::LauncherCommand> line = typed(std::string(before) + "--nnodes=2 t.py --x");
    ASSERT_TRUE(line.ok()) << before << line.error().text;
    EXPECT_EQ(line->words, (Strings{"--nnodes=2", "t.py", "--x"})) << before;
  }
}

TEST(LauncherCommand, KeepsVariables) {
  const Result<ctl::LauncherCommand> line = typed("A=1 env PET_NNODES=2 torchrun t.py X=1");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->variables, (Strings{"A=1", "PET_NNODES=2"}));
  EXPECT_EQ(line->words, (Strings{"t.py", "X=1"}));
}

TEST(LauncherCommand, TheOldLauncherPassesTheLocalRank) {
  const std::string launch = "python -m torch.distributed.launch --nproc_per_node=4 ";
  EXPECT_EQ(typed(launch + "t.py --use_env")->words,
            (Strings{"--pass-local-rank=dash", "--nproc_per_node=4", "t.py", "--use_env"}));
  EXPECT_EQ(typed(launch + "--use_env t.py")->words, (Strings{"--nproc_per_node=4", "t.py"}));
}

TEST(LauncherCommand, RejectsOtherLaunchersInOneLine) {
  for (const char* line :
       {"horovodrun -np 8 python t.py", "deepspeed t.py", "accelerate launch t.py",
        "/opt/bin/mpirun -np 4 ./train", "python t.py"}) {
    const Result<ctl::LauncherCommand> read = typed(line);
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_THAT(read.error().text, HasSubstr("explain knows lines of torchrun and cpprun, not of"));
    EXPECT_THAT(read.error().text, HasSubstr("docs/how-to/migrate.md"));
    EXPECT_THAT(read.error().text, Not(HasSubstr("\n")));
  }
  EXPECT_THAT(ctl::read_launcher_command({}).error().text, HasSubstr("usage: cpprunctl explain"));
  EXPECT_FALSE(typed("srun hostname").ok());
}

}  // namespace
}  // namespace cpprun::test

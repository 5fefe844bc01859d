// What cpprunctl explain says of command lines.
#include "launcher/ctl/explanation.hpp"

#include <gmock/gmock.h>

#include "tests/unit/options_support.hpp"

namespace cpprun::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string explained(const Strings& options) {
  return ctl::explanation(config_of(line(options)));
}

TEST(Explanation, OfOneNode) {
  const std::string text = explained({"--standalone", "--nproc_per_node=2"});
  EXPECT_THAT(text, HasSubstr("train.py   x2\n"));
  EXPECT_THAT(text, HasSubstr("meets       on this machine, at a free port of loopback, run id"));
  EXPECT_THAT(text, HasSubstr("TORCHELASTIC_USE_AGENT_STORE=False"));
  EXPECT_THAT(text, Not(HasSubstr("agents of torchrun")));
}

TEST(Explanation, OfManyNodes) {
  const std::string text =
      explained({"--nnodes=2:4", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:77", "--rdzv-id=j",
                 "--max-restarts=3", "--snapshot-dir=/scratch", "--log-dir=/tmp"});
  EXPECT_THAT(text, HasSubstr("meets       c10d at n1:77, 2 to 4 nodes, run id j\n"));
  EXPECT_THAT(text, HasSubstr("restarts    3 after failures of workers, over all nodes, from the "
                              "newest snapshot in /scratch\n"));
  EXPECT_THAT(text, HasSubstr("logs        /tmp\n"));
  EXPECT_THAT(text, HasSubstr("agents of torchrun can't take part"));
}

}  // namespace
}  // namespace cpprun::test

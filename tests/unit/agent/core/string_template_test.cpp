// Python's Template.safe_substitute, literally.
#include "agent/core/string_template.hpp"

#include <gtest/gtest.h>

namespace cpprun::agent {
namespace {

std::string filled(std::string_view text) {
  return safe_substitute(text, {{"local_rank", "3"}, {"role_name", "trainer"}, {"_x", "$rank"}});
}

TEST(StringTemplate, KnownNames) {
  EXPECT_EQ(filled("${local_rank}"), "3");
  EXPECT_EQ(filled("$local_rank"), "3");
  EXPECT_EQ(filled("a${local_rank}b$local_rank-c"), "a3b3-c");
  EXPECT_EQ(filled("[${role_name}${local_rank}]:"), "[trainer3]:");
  EXPECT_EQ(filled("$_x"), "$rank") << "what was put in is not read again";
}

TEST(StringTemplate, KeepsEverythingElse) {
  for (const char* text : {"", "plain", "$", "$$$", "${", "${}", "${local_rank", "$1", "${1}",
                           "$unknown", "${unknown}", "${local rank}", "$local_ranks",
                           "{local_rank}", "cost: 5$", "${ local_rank}", "\xc3\xa4$\xc3\xa4"}) {
    std::string expected = std::string(text) == "$$$" ? "$$" : text;
    EXPECT_EQ(filled(text), expected);
  }
}

TEST(StringTemplate, TwoDollarsBecomeOne) {
  EXPECT_EQ(filled("$$local_rank"), "$local_rank");
  EXPECT_EQ(filled("$$$local_rank"), "$3");
  EXPECT_EQ(filled("$${local_rank}"), "${local_rank}");
}

}  // namespace
}  // namespace cpprun::agent

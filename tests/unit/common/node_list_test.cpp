// Slurm's lists of node names: every form of bracket, malformed lists, random texts.
#include "common/node_list.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::test {
namespace {

std::string expanded(std::string_view list) {
  const Result<std::vector<std::string>> names = expand_node_list(list);
  return names ? text::join(*names, " ") : "error: " + names.error().text;
}

TEST(NodeList, ExpandsEveryForm) {
  const std::pair<const char*, const char*> kForms[] = {
      {"n1", "n1"},
      {"n1,n2", "n1 n2"},
      {"n[1-3]", "n1 n2 n3"},
      {"n[3]", "n3"},
      {"n[1,3,5-6]", "n1 n3 n5 n6"},
      {"n[01-03]", "n01 n02 n03"},
      {"n[008-011]", "n008 n009 n010 n011"},
      {"n[8-11]", "n8 n9 n10 n11"},
      {"n[1-2]-ib", "n1-ib n2-ib"},
      {"n[1-2].example.com", "n1.example.com n2.example.com"},
      {"rack[0-1]n[1-2]", "rack0n1 rack0n2 rack1n1 rack1n2"},
      {"a[1-2]b[01,03]c", "a1b01c a1b03c a2b01c a2b03c"},
      {"login,n[1-2],gpu-a100-[7]", "login n1 n2 gpu-a100-7"},
      {"a_b.c-d1", "a_b.c-d1"},
      {"[1-2]", "1 2"},
  };
  for (const auto& [list, names] : kForms) EXPECT_EQ(expanded(list), names) << list;
}

TEST(NodeList, RejectsWhatIsMalformed) {
  for (const char* list : {"",
                           ",",
                           "n1,",
                           ",n1",
                           "n1,,n2",
                           "n[",
                           "n[1",
                           "n[1-",
                           "n[1-]",
                           "n[-2]",
                           "n[]",
                           "n[,]",
                           "n[1,]",
                           "n[2-1]",
                           "n[a-b]",
                           "n[1-2-3]",
                           "n[[1-2]]",
                           "n]1",
                           "n[1]]",
                           "n[ 1-2]",
                           "n[+1-2]",
                           "n 1",
                           "n1;n2",
                           "n1\n",
                           "n/1",
                           "n[1-9999999999999999999]",
                           "n[1-100001]",
                           "a[1-1000]b[1-1000]",
                           "(null)"}) {
    EXPECT_TRUE(expanded(list).starts_with("error: ")) << list << ": " << expanded(list);
  }
  EXPECT_TRUE(expanded(std::string(limits::kNodeListBytes + 1, 'n')).starts_with("error: "));
}

TEST(NodeList, TakesTheLargestJob) {
  const Result<std::vector<std::string>> names = expand_node_list("n[1-100000]");
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->size(), static_cast<size_t>(limits::kNodesPerJob));
  EXPECT_EQ(names->back(), "n100000");
}

// Random texts of the grammar's own characters: an answer or an error, and names without brackets.
TEST(NodeList, AnswersAnyText) {
  std::mt19937 random(24);  // NOLINT: the same texts in each run
  const std::string alphabet = "n019-,[]a. ";
  for (int i = 0; i < 50'000; ++i) {
    std::string list;
    const size_t size = random() % 16;
    for (size_t c = 0; c < size; ++c) list += alphabet[random() % alphabet.size()];
    const Result<std::vector<std::string>> names = expand_node_list(list);
    if (!names) continue;
    ASSERT_FALSE(names->empty()) << list;
    for (const std::string& name : *names) {
      ASSERT_FALSE(name.empty()) << list;
      ASSERT_EQ(name.find_first_of("[], "), std::string::npos) << list;
    }
  }
}

}  // namespace
}  // namespace cpprun::test

// `cpprunctl slurm script`: the shipped batch file with the values of one job.
#include "launcher/cpprunctl/slurm/slurm_script.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

std::string script(const SlurmScriptOptions& options) { return slurm_script(options).value(); }

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(SlurmScript, WithoutValuesItIsTheShippedFile) {
  EXPECT_EQ(script({}), slurm_batch_file());
  EXPECT_EQ(script({{{"nodes", ""}}, {}}), slurm_batch_file());
}

TEST(SlurmScript, ValuesReplaceThoseOfTheFile) {
  const std::string text = script({{{"nodes", "4"}, {"time", "24:00:00"}}, {}});
  EXPECT_EQ(count(text, "#SBATCH --nodes="), 1U);
  EXPECT_EQ(count(text, "#SBATCH --nodes=4\n"), 1U);
  EXPECT_EQ(count(text, "#SBATCH --time=24:00:00\n"), 1U);
  EXPECT_LT(text.find("--time="), text.find("set -euo pipefail")) << "sbatch reads no option there";
}

TEST(SlurmScript, TheProgramIsQuoted) {
  const std::string text = script({{}, {"train.py", "--name", "it's mine", "$HOME"}});
  EXPECT_EQ(count(text, "\"$@\""), 0U);
  EXPECT_TRUE(text.ends_with(" train.py --name 'it'\\''s mine' '$HOME'\n")) << text;
  EXPECT_EQ(count(text, "sbatch cpprun.sbatch"), 0U) << "the file's use is another one now";
}

TEST(SlurmScript, AValueIsOneWord) {
  for (const char* value : {"4 --evil", "4\n#SBATCH --uid=0", "a#b"}) {
    EXPECT_FALSE(slurm_script({{{"nodes", value}}, {}})) << value;
  }
}

}  // namespace
}  // namespace cpprun::test

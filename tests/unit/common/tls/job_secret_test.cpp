// The secret of a job: where it comes from, what is refused, where its bytes lie.
#include "common/tls/job_secret.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/temp_folder.hpp"

namespace cpprun::test {
namespace {

using testing::HasSubstr;

std::string text_of(const JobSecret& secret) {
  return {reinterpret_cast<const char*>(secret.bytes().data()), secret.bytes().size()};
}

class JobSecrets : public testing::Test {
 public:
  std::string file(const std::string& content, mode_t mode = 0600) {
    const std::string path = folder.path() + "/secret";
    std::ofstream(path) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string error_of(const std::string& path) {
    const auto chosen = choose_secret(path, "", nullptr);
    return chosen ? "" : chosen.error().text;
  }

  TempFolder folder;
  const std::string good = std::string(16, 'g');
};

TEST_F(JobSecrets, FileLosesTheNewlineAtItsEnd) {
  for (const char* end : {"", "\n", "\r\n"}) {
    const auto secret = choose_secret(file(good + end), "", nullptr);
    ASSERT_TRUE(secret) << secret.error().text;
    EXPECT_EQ(text_of(**secret), good);
  }
}

TEST_F(JobSecrets, FilesThatOthersCanReadAreRefused) {
  EXPECT_THAT(error_of(file(good, 0640)), HasSubstr("(mode 0640)"));
  EXPECT_THAT(error_of(file(good, 0604)), HasSubstr("chmod 600"));
  EXPECT_EQ(error_of(file(good, 0400)), "");
}

TEST_F(JobSecrets, LengthIsChecked) {
  EXPECT_THAT(error_of(file(std::string(15, 'x') + "\n")), HasSubstr("has 15 bytes"));
  EXPECT_THAT(error_of(file("")), HasSubstr("has 0 bytes"));
  EXPECT_EQ(error_of(file(std::string(1024, 'x') + "\r\n")), "");
  EXPECT_THAT(error_of(file(std::string(1025, 'x'))), HasSubstr("longer than 1024"));
  EXPECT_THAT(error_of(file(std::string(100'000, 'x'))), HasSubstr("longer than 1024"));
  EXPECT_THAT(error_of(folder.path()), HasSubstr("no regular file"));
  EXPECT_THAT(error_of(folder.path() + "/missing"), HasSubstr("No such file"));
  const std::shared_ptr<const JobSecret> small = *JobSecret::copy_of("short");
  EXPECT_THAT(choose_secret("", "", small).error().text, HasSubstr("CPPRUN_SECRET has 5 bytes"));
}

TEST_F(JobSecrets, OptionBeforeFileVariableBeforeVariable) {
  const std::shared_ptr<const JobSecret> variable = *JobSecret::copy_of(std::string(20, 'v'));
  const std::string path = file(good);
  EXPECT_EQ(text_of(**choose_secret("", path, variable)), good);
  EXPECT_EQ(text_of(**choose_secret(path, "/missing", variable)), good);
  EXPECT_EQ(*choose_secret("", "", variable), variable);
  EXPECT_EQ(*choose_secret("", "", nullptr), nullptr);
}

TEST_F(JobSecrets, VariableIsTakenOutOfTheEnvironment) {
  ::setenv("CPPRUN_SECRET", good.c_str(), 1);
  const char* where = ::getenv("CPPRUN_SECRET");
  const auto secret = take_secret_variable();
  ASSERT_TRUE(secret);
  EXPECT_EQ(text_of(**secret), good);
  EXPECT_EQ(::getenv("CPPRUN_SECRET"), nullptr);
  EXPECT_EQ(*where, '\0');
  EXPECT_EQ(*take_secret_variable(), nullptr);
}

// The kernel's flags of the memory: dd, not in core dumps; wf, not in forked processes.
TEST_F(JobSecrets, BytesAreInNoCoreDump) {
  const auto secret = *JobSecret::copy_of(good);
  std::ostringstream start;
  start << std::hex << reinterpret_cast<uintptr_t>(secret->bytes().data()) << "-";
  std::ifstream maps("/proc/self/smaps");
  std::string flags;
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') != std::string::npos && line.find(':') > line.find(' ')) {
      is_here = line.find(start.str()) != std::string::npos;
    }
    if (is_here && line.starts_with("VmFlags:")) flags = line;
  }
  if (flags.empty()) GTEST_SKIP() << "the kernel shows no flags of memory";
  EXPECT_THAT(flags, HasSubstr(" dd"));
  EXPECT_THAT(flags, HasSubstr(" wf"));
}

}  // namespace
}  // namespace cpprun::test

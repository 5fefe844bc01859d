// The real environment: files of each kind, this process's variables, fresh ids.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

class OptionsEnvironment : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "options_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    for (const std::string& path : made_) ::unlink(path.c_str());
    ::rmdir(folder_.c_str());
  }

  std::string make(const std::string& name, const std::string& content, mode_t mode) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << content;
    ::chmod(path.c_str(), mode);
    made_.push_back(path);
    return path;
  }

  std::string folder_;
  Strings made_;
};

TEST_F(OptionsEnvironment, DistinguishesFileTypes) {
  Environment real = real_environment();
  auto kind = [&](const std::string& path) { return real.look_at(path).kind; };
  EXPECT_EQ(kind(folder_), FileKind::Directory);
  EXPECT_EQ(kind(folder_ + "/none"), FileKind::Missing);
  EXPECT_EQ(kind("/proc/self/exe"), FileKind::Program);
  EXPECT_EQ(kind(make("sh", "#!/bin/sh\necho python\n", 0755)), FileKind::Script);
  EXPECT_EQ(kind(make("py", "#!/usr/bin/env python3\n", 0755)), FileKind::Other);
  EXPECT_EQ(kind(make("empty", "", 0644)), FileKind::Other);
  EXPECT_EQ(kind("/dev/null"), FileKind::Other);
  EXPECT_TRUE(real.look_at(folder_ + "/sh").is_executable);
  EXPECT_FALSE(real.look_at(folder_ + "/empty").is_executable);
}

// Opening a pipe would wait for its writer, and reading it would take the worker's input.
TEST_F(OptionsEnvironment, DoesNotOpenPipes) {
  std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  made_.push_back(path);
  EXPECT_EQ(real_environment().look_at(path).kind, FileKind::Other);
}

TEST_F(OptionsEnvironment, FindsProgramsAsExecDoes) {
  std::string path = make("tool", "#!/bin/sh\n", 0755);
  make("data", "#!/bin/sh\n", 0644);
  Environment environment = real_environment();
  environment.variables = {"PATH=/nowhere:" + folder_};
  EXPECT_EQ(find_program(environment, "tool"), path);
  EXPECT_EQ(find_program(environment, "data"), "");
  EXPECT_EQ(find_program(environment, path), path);
  EXPECT_EQ(find_program(environment, folder_), "");
  EXPECT_EQ(find_program(environment, ""), "");
  environment.variables = {};
  EXPECT_NE(find_program(environment, "sh"), "");
}

TEST_F(OptionsEnvironment, VariablesCpusAndIds) {
  ASSERT_EQ(::setenv("CPPRUN_OPTIONS_TEST", "a=b", 1), 0);
  Environment real = real_environment();
  EXPECT_EQ(real.variable("CPPRUN_OPTIONS_TEST"), "a=b");
  EXPECT_FALSE(real.variable("CPPRUN_OPTIONS_TES").has_value());
  ::unsetenv("CPPRUN_OPTIONS_TEST");
  EXPECT_GE(real.count_cpus(), 1);
  std::string id = real.make_uuid();
  EXPECT_EQ(id.size(), 36u);
  EXPECT_EQ(id[14], '4');
  EXPECT_NE(id, real.make_uuid());
}

}  // namespace
}  // namespace cpprun::test

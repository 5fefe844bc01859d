// The error file of this process: threads that report concurrently.
#include "cpprun/worker/error_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "agent/process/diagnostics/error_file.hpp"
#include "cpprun/worker/internal/own_agent.hpp"

namespace cpprun::worker {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One test, since a process has one report.
TEST(WorkerErrorFile, OneOfManyConcurrentReportsIsWrittenWhole) {
  const std::string path = testing::TempDir() + "error-" + std::to_string(::getpid()) + ".json";
  EXPECT_EQ(write_error_file({.message = "too early"}), Reported::NoFile);
  set_error_file(path);
  set_error_file("/another/path");  // changes nothing
  EXPECT_EQ(error_file(), path);
  std::array<Reported, 8> results{};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&results, i] { results[i] = report_error(std::to_string(i)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::count(results.begin(), results.end(), Reported::Written), 1);
  EXPECT_EQ(std::count(results.begin(), results.end(), Reported::NotTheFirst), 7);
  const size_t first = static_cast<size_t>(
      std::find(results.begin(), results.end(), Reported::Written) - results.begin());
  EXPECT_EQ(parse_error_file(path, content(path)).message, std::to_string(first));
  std::filesystem::remove(path);
}

TEST(WorkerErrorFile, AStopRequestReachesEveryThread) {
  std::thread waiting([] {
    while (!should_stop()) std::this_thread::yield();
  });
  request_stop();
  waiting.join();
  EXPECT_TRUE(should_stop());
}

}  // namespace
}  // namespace cpprun::worker

// The place of a worker's error in its program.
#include "common/failure/error_location.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

TEST(ErrorLocation, IsTheDeepestFrameOfTheProgramItself) {
  EXPECT_EQ(
      error_location(
          {"Traceback (most recent call last):", "  File \"/data/train.py\", line 9, in <module>",
           "    main()", "  File \"/data/train.py\", line 4, in load",
           "  File \"/x/site-packages/torch/nn/m.py\", line 70, in forward", "ValueError: no"}),
      "train.py:4 in load");
  EXPECT_EQ(error_location({"  File \"/data/train.py\", line 9, in <module>",
                            "  File \"/src/cpprun_worker/_snapshot/m.py\", line 7, in resume"}),
            "train.py:9 in <module>")
      << "cpprun_worker on PYTHONPATH";
}

TEST(ErrorLocation, IsInAPackageIfAllFramesAre) {
  EXPECT_EQ(error_location({"  File \"/usr/lib/python3.11/runpy.py\", line 3, in run",
                            "  File \"/x/site-packages/m.py\", line 7, in go"}),
            "m.py:7 in go");
}

TEST(ErrorLocation, OfSeveralTracebacksTheLastCounts) {
  EXPECT_EQ(error_location({"Traceback (most recent call last):", "  File \"a.py\", line 1, in f",
                            "KeyError",
                            "Traceback (most recent call last):", "  File \"b.py\", line 2, in g"}),
            "b.py:2 in g");
  EXPECT_EQ(error_location({"  File \"a.py\", line 3"}), "a.py:3")
      << "a SyntaxError has no function";
}

TEST(ErrorLocation, IsFoundBehindTheRankThatTorchPutsBeforeEachLine) {
  EXPECT_EQ(
      error_location({"[rank1]: Traceback (most recent call last):",
                      "[rank1]:   File \"/data/train.py\", line 8, in <module>",
                      "[rank1]:     raise RuntimeError(\"boom\")", "[rank1]: RuntimeError: boom"}),
      "train.py:8 in <module>");
  EXPECT_EQ(error_location({"[rank1]: Traceback (most recent call last):",
                            "[rank1]:   File \"a.py\", line 1, in f", "[rank1]: KeyError: 1",
                            "[rank1]: Traceback (most recent call last):",
                            "[rank1]:   File \"/x/site-packages/b.py\", line 2, in g"}),
            "b.py:2 in g")
      << "the last traceback counts";
}

TEST(ErrorLocation, OfAFaultDumpIsInTheThreadThatFailed) {
  EXPECT_EQ(
      error_location({"Fatal Python error: Segmentation fault", "",
                      "Thread 0x00007f9a (most recent call first):",
                      "  File \"/data/loader.py\", line 3 in fetch", "",
                      "Current thread 0x00007f9b (most recent call first):",
                      "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at",
                      "  File \"/data/train.py\", line 5 in inner",
                      "  File \"/data/train.py\", line 8 in outer", "",
                      "Extension modules: numpy (total: 1)"}),
      "train.py:5 in inner");
  EXPECT_EQ(error_location({"  File \"/data/train.py\", line 5 in inner", "",
                            "Extension modules: numpy (total: 1)"}),
            "")
      << "which thread it is has been cut off";
}

TEST(ErrorLocation, OtherTextHasNone) {
  EXPECT_EQ(error_location(std::vector<std::string>{"File \"a\", line x, in y", "File", ""}), "");
  EXPECT_EQ(error_location(WorkerExit{}), "");
}

}  // namespace
}  // namespace cpprun::test

// The class of a worker's failure, and when two failures are the same.
#include "common/failure/failure_class.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace cpprun::test {
namespace {

WorkerExit ended(int exit_code, std::vector<std::string> lines = {}) {
  WorkerExit end;
  end.exit_code = exit_code;
  end.last_lines = std::move(lines);
  return end;
}

WorkerExit wrote(const std::string& message) {
  WorkerExit end = ended(1, {"what the interpreter prints after it"});
  end.error.emplace().message = message;
  return end;
}

std::string word_of(const WorkerExit& end) { return name_of(classify(end)); }

TEST(FailureClass, ACrashSignalIsACrash) {
  for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    EXPECT_EQ(word_of(ended(-signal)), "crash") << signal;
  }
  for (int signal : {SIGKILL, SIGTERM, SIGUSR1}) {
    EXPECT_EQ(word_of(ended(-signal)), "killed") << signal;
  }
}

TEST(FailureClass, RecognizesOutOfMemory) {
  WorkerExit killed = ended(-SIGKILL);
  killed.is_oom_kill = true;
  EXPECT_EQ(word_of(killed), "out_of_memory");
  EXPECT_EQ(word_of(wrote("MemoryError: no room")), "out_of_memory");
  EXPECT_EQ(word_of(wrote("terminate called: std::bad_alloc")), "out_of_memory");
  EXPECT_EQ(word_of(wrote("DefaultCPUAllocator: can't allocate memory: 4 GB")), "out_of_memory");
  EXPECT_EQ(word_of(ended(-SIGABRT, {"terminate called after throwing an instance of "
                                     "'std::bad_alloc'",
                                     "  what():  std::bad_alloc"})),
            "out_of_memory");
  EXPECT_EQ(word_of(wrote("torch.OutOfMemoryError: CUDA")), "user_error") << "another memory";
}

TEST(FailureClass, DistinguishesALostPeerFromAnOwnFailure) {
  EXPECT_EQ(word_of(ended(1, {"RuntimeError: Connection closed by peer [10.0.0.2]"})), "lost_peer");
  EXPECT_EQ(word_of(ended(3, {"ValueError: no"})), "user_error");
}

TEST(FailureClass, AHangHasNoOtherClass) {
  WorkerExit end = ended(-SIGABRT);
  end.hang = "no heartbeat for 12.0 s";
  EXPECT_EQ(word_of(end), "hang");
}

TEST(FailureClass, ClassifiesFailuresWithoutAWorkerExit) {
  EXPECT_STREQ(name_of(FailureClass::StartFailure), "start_failure");
  EXPECT_STREQ(name_of(FailureClass::LostNode), "lost_node");
}

TEST(ErrorTextOfWorker, UsesTheErrorFileOrTheLastMeaningfulLine) {
  EXPECT_EQ(error_text(wrote("ValueError: no")), "ValueError: no");
  EXPECT_EQ(error_text(ended(1, {"first", "  last one ", "", "  "})), "last one");
  EXPECT_EQ(error_text(ended(1, {"", " "})), "");
  EXPECT_EQ(error_text(wrote("")), "what the interpreter prints after it");
}

TEST(ErrorTextOfWorker, HasNoRankOfTorch) {
  EXPECT_EQ(error_text(ended(1, {"[rank12]: ValueError: no"})), "ValueError: no");
  EXPECT_EQ(word_of(ended(1, {"[rank0]: MemoryError"})), "out_of_memory");
  for (const char* other :
       {"[rank]: a", "[rank1] a", "[rank1]:a", "[rankx]: a", "[rank1", "rank1: a"})
    EXPECT_EQ(error_text(ended(1, {other})), other);
}

TEST(ErrorTextOfWorker, HasAllLinesOfAnExceptionsMessage) {
  const std::string first = "RuntimeError: Error(s) in loading state_dict for Linear:";
  EXPECT_EQ(
      error_text(ended(1, {"    raise", "[rank0]: " + first, "[rank0]: \tMissing key(s): \"a\"",
                           "[rank0]: \tUnexpected key(s): \"b\". ", ""})),
      first + "\nMissing key(s): \"a\"\nUnexpected key(s): \"b\".");
  EXPECT_EQ(error_text(ended(1, {"Traceback:", "  File \"a.py\", line 1", "    stop()"})), "stop()")
      << "no exception";
  EXPECT_EQ(error_text(ended(1, {"KeyError: 1", "two", "  three"})), "three") << "of another line";
  EXPECT_EQ(error_text(ended(1, {"a.py:4: UserWarning: no", "  warnings.warn("})), "");
  EXPECT_EQ(error_text(ended(1, {"two words Error: no", "  end"})), "end") << "no exception's name";
}

TEST(ErrorTextOfWorker, IsTheWholeExceptionOfTheLastTraceback) {
  const std::vector<std::string> cuda{"[rank0]:   File \"a.py\", line 1, in <module>",
                                      "[rank0]:     step()",
                                      "[rank0]: RuntimeError: CUDA error: device-side assert",
                                      "[rank0]: For debugging set CUDA_LAUNCH_BLOCKING=1",
                                      "",
                                      "[rank0]: Compile with",
                                      "",
                                      "[rank0]:[W ProcessGroupNCCL.cpp] Warning: not destroyed"};
  const std::string whole =
      "RuntimeError: CUDA error: device-side assert\nFor debugging set CUDA_LAUNCH_BLOCKING=1\n"
      "Compile with";
  EXPECT_EQ(error_text(ended(1, cuda)), whole);
  EXPECT_EQ(error_text(ended(-SIGABRT, cuda)), whole) << "torch prints no other exceptions";
  std::vector<std::string> plain{"Traceback (most recent call last):",
                                 "  File \"a.py\", line 1, in f",
                                 "    f()",
                                 "ValueError: no",
                                 "",
                                 "wandb: done"};
  EXPECT_EQ(error_text(ended(1, plain)), "ValueError: no\nwandb: done");
  std::vector<std::string> native = plain;
  native.insert(native.begin() + 4, {"Exception raised from check at a.cpp:1", "frame #0: f"});
  EXPECT_EQ(error_text(ended(1, native)), "ValueError: no");
  EXPECT_EQ(error_text(ended(3, plain)), "wandb: done") << "no exception ended the program";
  plain.insert(plain.begin() + 4,
               {"Exception ignored in: <a>", "  File \"b.py\", line 2, in g", "TypeError: other"});
  EXPECT_EQ(error_text(ended(1, plain)), "ValueError: no") << "of a destructor";
  plain.insert(plain.begin() + 4, 20, "epoch");
  EXPECT_EQ(error_text(ended(1, plain)), "wandb: done") << "the program continued";
}

TEST(ErrorTextOfWorker, IsTheCppExceptionThatNothingCaught) {
  const auto aborted = [](std::vector<std::string> lines) {
    return error_text(ended(-SIGABRT, std::move(lines)));
  };
  EXPECT_EQ(
      aborted({"terminate called after throwing an instance of 'c10::DistBackendError'",
               "  what():  [Rank 1] Watchdog caught collective operation timeout", "of 10 s",
               "Exception raised from checkTimeout at ProcessGroupNCCL.cpp:635",
               "frame #0: c10::Error::Error()", "", "Exception raised from watchdog",
               "frame #0: c10::Error::Error()", ""}),
      "c10::DistBackendError: [Rank 1] Watchdog caught collective operation timeout\nof 10 s");
  EXPECT_EQ(aborted({"  what():  no GPU", "Fatal Python error: Aborted"}), "no GPU");
  EXPECT_EQ(aborted({"terminate called"}), "terminate called");
}

TEST(ErrorTextOfWorker, IsNotTheLastLineBeforeASignal) {
  for (int signal : {SIGKILL, SIGTERM, SIGSEGV, SIGBUS}) {
    EXPECT_EQ(error_text(ended(-signal, {"train.py:4: UserWarning: a", "  warn()"})), "") << signal;
  }
  EXPECT_EQ(error_text(ended(-SIGABRT, {"double free or corruption"})),
            "double free or corruption");
  EXPECT_EQ(error_text(ended(-SIGINT, {"  File \"a.py\", line 1, in f", "KeyboardInterrupt"})),
            "KeyboardInterrupt");
}

TEST(ErrorTextOfWorker, OfAnExceptionGroupHasNoBars) {
  EXPECT_EQ(error_text(ended(
                1, {"  + Exception Group Traceback (most recent call last):",
                    "  |   File \"a.py\", line 18, in <module>", "  |     raise ExceptionGroup()",
                    "  | ExceptionGroup: two (2 sub-exceptions)",
                    "  +-+---------------- 1 ----------------", "    | ValueError: a",
                    "    +---------------- 2 ----------------", "    | KeyError: 'b'",
                    "    +------------------------------------"})),
            "ExceptionGroup: two (2 sub-exceptions)\nValueError: a\nKeyError: 'b'");
}

TEST(ErrorTextOfWorker, IsTheErrorOfAFaultDump) {
  const std::vector<std::string> dump{"",
                                      "Current thread 0x00007f9b (most recent call first):",
                                      "  File \"train.py\", line 5 in inner",
                                      "  File \"train.py\", line 8 in <module>",
                                      "",
                                      "Extension modules: numpy, torch._C (total: 2)"};
  const auto after = [&dump](std::vector<std::string> lines) {
    lines.insert(lines.end(), dump.begin(), dump.end());
    return error_text(ended(1, lines));
  };
  EXPECT_EQ(after({"epoch 3", "Fatal Python error: Segmentation fault"}),
            "Fatal Python error: Segmentation fault");
  EXPECT_EQ(after({"  what():  no GPU", "Fatal Python error: Aborted"}), "what():  no GPU")
      << "the reason of an abort comes before it";
  EXPECT_EQ(after({"Fatal Python error: Aborted"}), "Fatal Python error: Aborted");
  EXPECT_EQ(after({}), "") << "its beginning has been cut off";
  EXPECT_EQ(error_text(ended(1, {"  File \"train.py\", line 5"})), "File \"train.py\", line 5");
}

TEST(Signature, IgnoresNumbers) {
  EXPECT_EQ(signature_of(ended(1, {"port 4711 is taken"})),
            signature_of(ended(1, {"port 4712 is taken"})));
  EXPECT_NE(signature_of(ended(1, {"a"})), signature_of(ended(1, {"b"})));
  EXPECT_NE(signature_of(ended(1, {"a"})), signature_of(ended(2, {"a"})));
}

TEST(StartUp, LastsTheFirstSeconds) {
  using namespace std::chrono_literals;
  WorkerExit end = ended(1);
  end.ended_at = end.started_at + 9s;
  EXPECT_TRUE(is_startup_failure(end));
  end.ended_at = end.started_at + 11s;
  EXPECT_FALSE(is_startup_failure(end));
}

}  // namespace
}  // namespace cpprun::test

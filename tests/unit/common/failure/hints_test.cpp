// The table of hints: each row matches its errors, and the document equals the table.
#include "common/failure/hints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "common/text.hpp"

namespace cpprun::test {
namespace {

std::string id_of(const WorkerExit& end, FailureClass kind, std::string_view why = "") {
  const Hint* hint = hint_for(end, kind, why);
  return hint == nullptr ? "" : std::string(hint->id);
}

std::string id_for_words(const std::string& line) {
  WorkerExit end;
  end.exit_code = 1;
  end.last_lines = {"something before", line, "something after"};
  return id_of(end, classify(end));
}

TEST(Hints, EachRowMatchesItsPatterns) {
  for (const Hint& hint : hints()) {
    for (const std::string& word : text::split(hint.words, '|')) {
      EXPECT_FALSE(word.empty()) << hint.id;
      if (word.starts_with("class=") || word.starts_with("signal=")) continue;
      // A pattern may also be in an earlier, more specific row.
      EXPECT_NE(id_for_words("Error: " + word + " here"), "") << hint.id << ": " << word;
    }
  }
}

TEST(Hints, RealErrorsMatchTheirRow) {
  const std::vector<std::pair<const char*, const char*>> kLines{
      {"b left (it is unusable: SIGKILL did not end rank 1 (pid 4711))", "unusable_node"},
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 MiB", "gpu_out_of_memory"},
      {"OSError: [Errno 98] Address already in use", "port_in_use"},
      {"ModuleNotFoundError: No module named 'cpprun_worker'", "missing_cpprun_worker"},
      {"ModuleNotFoundError: No module named 'cpprun_worker.lightning'", "missing_cpprun_worker"},
      {"ModuleNotFoundError: No module named 'torch'", "missing_module"},
      {"ImportError: libcudart.so.12: cannot open shared object file", "missing_library"},
      {"python3: can't open file '/x/train.py': [Errno 2] No such file", "program_not_found"},
      {"train.py: error: unrecognized arguments: --local-rank=0", "wrong_arguments"},
      {"RuntimeError: CUDA error: invalid device ordinal", "no_gpu"},
      {"RuntimeError: CUDA error: an illegal memory access was encountered", "gpu_fault"},
      {"Rank 0: monitoredBarrier failed: ranks 1", "collective_mismatch"},
      {"RuntimeError: Expected to have finished reduction in the prior iteration before",
       "unused_parameters"},
      {"TimeoutError: The client socket has timed out after 60000ms", "rendezvous_timeout"},
      {"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3", "collective_timeout"},
      {"RuntimeError: [unbound_buffer.cc:78] Timed out waiting 3000ms for recv operation to "
       "complete",
       "collective_timeout"},
      {"RuntimeError: DataLoader worker is killed by signal: Bus error. insufficient shared memory",
       "shared_memory"},
      {"RuntimeError: DataLoader worker (pid 27218) is killed by signal: Killed. ",
       "dataloader_killed"},
      {"OSError: [Errno 28] No space left on device", "disk_full"},
      {"OSError: [Errno 24] Too many open files", "too_many_files"},
      {"RuntimeError: can't start new thread", "no_threads"},
      {"PermissionError: [Errno 13] Permission denied: '/data'", "permission"},
      {"FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'", "file_not_found"},
      {"size mismatch for fc.weight: copying a param with shape", "bad_weights"},
      {"RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.1]:4711", "peer_lost"},
      {"ValueError: loss is nan at step 7", "nan"},
      {"ValueError: nothing of this", ""},
  };
  for (const auto& [line, id] : kLines) EXPECT_EQ(id_for_words(line), id) << line;
}

TEST(Hints, AMissingStoreSuggestsTheAgentsStore) {
  const Hint* hint = hint_for({}, FailureClass::UserError, "The client socket has timed out");
  ASSERT_NE(hint, nullptr);
  EXPECT_NE(std::string_view(hint->fix).find("--worker-store=agent"), std::string_view::npos);
}

TEST(Hints, TheExitStatusCountsToo) {
  WorkerExit end;
  end.exit_code = -9;
  EXPECT_EQ(id_of(end, classify(end)), "killed");
  end.exit_code = -15;
  EXPECT_EQ(id_of(end, classify(end)), "interrupted");
  end.exit_code = -24;
  EXPECT_EQ(id_of(end, classify(end)), "cpu_time");
  end.exit_code = -9;
  end.is_oom_kill = true;
  EXPECT_EQ(id_of(end, classify(end)), "out_of_memory");
  end = {};
  end.exit_code = -11;
  EXPECT_EQ(id_of(end, classify(end)), "crash");
  end.exit_code = -6;
  end.last_lines = {"terminate called without an active exception"};
  EXPECT_EQ(id_of(end, classify(end)), "unjoined_thread");
  end.last_lines = {"OSError: [Errno 98] Address already in use",
                    "terminate called without an active exception"};
  EXPECT_EQ(id_of(end, classify(end)), "port_in_use") << "the first error is the cause";
  end = {};
  end.exit_code = -7;
  EXPECT_EQ(id_of(end, classify(end)), "shared_memory");
  EXPECT_EQ(id_of({}, FailureClass::StartFailure, "no such file"), "program_not_found");
  const std::vector<std::pair<const char*, const char*>> kStarts{
      {"cannot make /x/attempt_1: No space left on device", "disk_full"},
      {"cannot start /x: Resource temporarily unavailable (too many processes", "no_threads"},
      {"too many open files: 8 workers need up to 100 descriptors", "too_many_files"},
      {"cannot start /x: Cannot allocate memory", "out_of_memory"},
  };
  for (const auto& [why, id] : kStarts) EXPECT_EQ(id_of({}, FailureClass::StartFailure, why), id);
}

TEST(FailureClass, HasAllKinds) {
  WorkerExit end;
  end.exit_code = 13;
  EXPECT_STREQ(name_of(classify(end)), "user_error");
  end.last_lines = {"RuntimeError: Connection reset by peer"};
  EXPECT_STREQ(name_of(classify(end)), "lost_peer");
  end.last_lines = {"MemoryError"};
  EXPECT_STREQ(name_of(classify(end)), "out_of_memory");
  end.last_lines = {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"};
  EXPECT_STREQ(name_of(classify(end)), "user_error");  // of the GPU: its own hint
  end.exit_code = -15;
  EXPECT_STREQ(name_of(classify(end)), "killed");
  end.exit_code = -6;
  EXPECT_STREQ(name_of(classify(end)), "crash");
  end.is_oom_kill = true;
  EXPECT_STREQ(name_of(classify(end)), "out_of_memory");
}

TEST(Signature, IgnoresNumbersInMessages) {
  WorkerExit one;
  one.exit_code = 1;
  one.last_lines = {"Error in process 4711"};
  WorkerExit other = one;
  other.last_lines = {"Error in process 12", "  "};
  EXPECT_EQ(signature_of(one), signature_of(other));
  other.exit_code = 2;
  EXPECT_NE(signature_of(one), signature_of(other));
  other = one;
  other.last_lines = {"Another error"};
  EXPECT_NE(signature_of(one), signature_of(other));
}

std::string page() {
  std::string text =
      "# Troubleshooting\n\n"
      "The failure summary ends with a hint where one is known. This page lists all hints, each "
      "with its name and the texts that it matches.\nIt is made from "
      "`common/failure/hints.cpp`.\n";
  for (const Hint& hint : hints()) {
    text += "\n## " + std::string(hint.seen) + "\n\n`" + std::string(hint.id) + "`, for:";
    for (const std::string& word : text::split(hint.words, '|')) text += " `" + word + "`";
    std::string fix(hint.fix);
    fix[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(fix[0])));
    text += "\n\n" + fix + ".\n";
  }
  return text;
}

TEST(Hints, IdsAreUnique) {
  std::set<std::string_view> seen;
  for (const Hint& hint : hints()) EXPECT_TRUE(seen.insert(hint.id).second) << hint.id;
}

// CPPRUN_UPDATE=1 rewrites the document.
TEST(Hints, TheDocumentMatchesTheTable) {
  const char* path = "docs/how-to/troubleshooting.md";
  const std::string wanted = page();
  if (std::getenv("CPPRUN_UPDATE") != nullptr) std::ofstream(path) << wanted;
  std::stringstream there;
  there << std::ifstream(path).rdbuf();
  EXPECT_EQ(there.str(), wanted) << "run this test once with CPPRUN_UPDATE=1";
}

}  // namespace
}  // namespace cpprun::test

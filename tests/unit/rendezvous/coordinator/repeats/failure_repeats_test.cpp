// Which failures make another restart useless: a table of kinds of failure with the decision.
#include "rendezvous/coordinator/repeats/failure_repeats.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

RootCause cause(const std::string& error, int64_t step, int exit_code = 1) {
  RootCause made;
  made.node = "a";
  made.end.exit_code = exit_code;
  made.end.step = step;
  if (!error.empty()) made.end.last_lines = {error};
  return made;
}
RootCause hang(int64_t step) {
  RootCause made = cause("", step, 0);
  made.end.hang = "no heartbeat for 5.0 s";
  return made;
}

struct Round {
  RootCause failure;
  JobProgress made{};  // of the job, at the end of the round
};
struct Case {
  const char* what;
  std::vector<Round> rounds;
  std::string why;  // after the last round; all before it allow a restart
  int64_t repeats = 1;
};

const std::string kValue = "ValueError: bad batch";
const std::string kOther = "KeyError: 'x'";
const std::string kImport = "each start brings this error again";

const std::string kFruitless = "3 restarts in a row brought no progress";

std::string again(int64_t step) {
  return "the same failure came again at step " + std::to_string(step);
}

std::vector<Case> exceptions() {
  return {
      {"an exception, once", {{cause(kValue, 12), {12}}}, ""},
      {"the same at the same step",
       {{cause(kValue, 12), {12}}, {cause(kValue, 12), {12}}},
       again(12),
       2},
      {"the same at a later step", {{cause(kValue, 12), {12}}, {cause(kValue, 20), {20}}}, ""},
      {"the same at an earlier step", {{cause(kValue, 12), {12}}, {cause(kValue, 5), {12}}}, ""},
      {"another at the same step", {{cause(kValue, 12), {12}}, {cause(kOther, 12), {12}}}, ""},
      {"other numbers in the text",
       {{cause("ValueError: at 0x12", 3), {3}}, {cause("ValueError: at 0x77", 3), {3}}},
       again(3),
       2},
      {"the same step on a later try only",
       {{cause(kValue, 12), {12}}, {cause(kOther, 20), {20}}, {cause(kValue, 12), {20}}},
       ""},
      {"the step is unknown", {{cause(kValue, -1)}, {cause(kValue, -1)}}, "", 2},
      {"four unknown ones, the same",
       {{cause(kValue, -1)}, {cause(kValue, -1)}, {cause(kValue, -1)}, {cause(kValue, -1)}},
       kFruitless,
       4},
      {"four unknown ones, different",
       {{cause(kValue, -1)}, {cause(kOther, -1)}, {cause(kValue, -1)}, {cause(kOther, -1)}},
       ""},
      {"unknown steps, new snapshots each time",
       {{cause(kValue, -1), {-1, 10}},
        {cause(kValue, -1), {-1, 20}},
        {cause(kValue, -1), {-1, 30}},
        {cause(kValue, -1), {-1, 40}}},
       "",
       4},
      {"unknown steps, the snapshot does not move, different failures",
       {{cause(kValue, -1), {-1, 10}},
        {cause(kOther, -1), {-1, 10}},
        {cause(kValue, -1), {-1, 10}},
        {cause(kOther, -1), {-1, 10}}},
       kFruitless},
      {"different failures, each before the old step",
       {{cause(kValue, 12), {12}},
        {cause(kOther, 8), {12}},
        {cause(kValue, 9), {12}},
        {cause(kOther, 10), {12}}},
       kFruitless},
      {"the same, with one step more each time",
       {{cause(kValue, 12), {12}},
        {cause(kValue, 13), {13}},
        {cause(kValue, 14), {14}},
        {cause(kValue, 15), {15}}},
       ""}};
}

std::vector<Case> other_failures() {
  return {
      {"the first step ever is progress",
       {{cause(kValue, -1)}, {cause(kValue, -1)}, {cause(kValue, -1)}, {cause(kValue, 0), {0}}},
       ""},
      {"a missing module", {{cause("ModuleNotFoundError: No module named 'x'", -1)}}, kImport},
      {"an import error after progress", {{cause("ImportError: libx.so", 40), {40}}}, kImport},
      {"a syntax error", {{cause("SyntaxError: invalid syntax", -1)}}, kImport},
      {"a wrong indentation", {{cause("IndentationError: unexpected indent", -1)}}, kImport},
      {"a wrong tab", {{cause("TabError: inconsistent use", -1)}}, kImport},
      {"SIGSEGV twice at one step",
       {{cause("", 7, -11), {7}}, {cause("", 7, -11), {7}}},
       again(7),
       2},
      {"SIGKILL twice at different steps", {{cause("", 7, -9), {7}}, {cause("", 9, -9), {9}}}, ""},
      {"two signals at one step", {{cause("", 7, -9), {7}}, {cause("", 7, -11), {7}}}, ""},
      {"exit code 3 twice at one step",
       {{cause("", 7, 3), {7}}, {cause("", 7, 3), {7}}},
       again(7),
       2},
      {"two exit codes at one step", {{cause("", 7, 3), {7}}, {cause("", 7, 4), {7}}}, ""},
      {"a hang twice at one step", {{hang(7), {7}}, {hang(7), {7}}}, again(7), 2},
      {"a hang at two steps", {{hang(7), {7}}, {hang(8), {8}}}, ""},
      {"a hang, then an exception", {{hang(7), {7}}, {cause(kValue, 7), {7}}}, ""},
  };
}

TEST(FailureRepeats, DecideByTheTable) {
  std::vector<Case> all = exceptions();
  for (const Case& each : other_failures()) all.push_back(each);
  for (const Case& each : all) {
    control::PastFailures past;
    for (size_t i = 0; i < each.rounds.size(); ++i) {
      const std::string why = note_failure(each.rounds[i].failure, each.rounds[i].made, past);
      const bool is_last = i + 1 == each.rounds.size();
      EXPECT_EQ(why, is_last ? each.why : "") << each.what << ", round " << i;
    }
    EXPECT_EQ(past.repeats, each.repeats) << each.what;
  }
}

TEST(FailureRepeats, ALostPeerAndAFailedStartAreNoFailuresOfTheProgram) {
  control::PastFailures past;
  note_failure(cause(kValue, 3), {3}, past);
  RootCause start = cause("", -1);
  start.why = "the snapshot could not be fetched";
  const RootCause peer = cause("RuntimeError: Connection closed by peer [10.0.0.1]:4711", 3);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(note_failure(start, {3}, past), "");
    EXPECT_EQ(note_failure(peer, {3}, past), "");
  }
  EXPECT_EQ(past.repeats, 1);
  EXPECT_EQ(past.fruitless, 0);
}

TEST(FailureRepeats, ProgressOfAGoodRoundCounts) {
  control::PastFailures past;
  note_failure(cause(kValue, 3), {3}, past);
  note_failure(cause(kOther, 2), {3}, past);
  EXPECT_EQ(past.fruitless, 1);
  note_progress({9}, past);
  EXPECT_EQ(past.fruitless, 0);
  EXPECT_EQ(past.best_step, 9);
}

TEST(FailureRepeats, ForeignNumbersAreHarmless) {
  control::PastFailures past;
  past.last = std::string(100'000, 'x');
  past.repeats = past.fruitless = INT64_MAX;
  past = sane(past);
  note_failure(cause(kValue, 3), {-1}, past);
  past.repeats = past.fruitless = INT64_MIN;
  past = sane(past);
  EXPECT_EQ(past.repeats, 0);
  EXPECT_LT(past.last.size(), 1000U);
}

}  // namespace
}  // namespace cpprun::test

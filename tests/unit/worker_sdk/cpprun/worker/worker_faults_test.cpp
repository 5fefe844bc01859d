#include "cpprun/worker/faults.hpp"

#include <gtest/gtest.h>

namespace cpprun::worker {
namespace {

using FaultKind = Fault::FaultKind;

Fault parsed(std::string_view text) {
  const auto faults = parse_faults(text);
  EXPECT_TRUE(faults.ok()) << faults.error().text;
  return faults && faults->size() == 1 ? faults->front().fault : Fault{};
}

std::string error_of(std::string_view text) {
  const auto faults = parse_faults(text);
  return faults ? "no error" : faults.error().text;
}

TEST(WorkerFaults, ParsesPlaceAndKind) {
  const Fault fault = parsed("kill:rank=1,epoch=2,step=3,attempt=0,round=4");
  EXPECT_EQ(fault.what, FaultKind::Kill);
  EXPECT_EQ(fault.rank, 1);
  EXPECT_EQ(fault.epoch, 2);
  EXPECT_EQ(fault.step, 3);
  EXPECT_EQ(fault.attempt, 0);
  EXPECT_EQ(fault.round, 4);
}

TEST(WorkerFaults, ParsesEveryKind) {
  EXPECT_EQ(parsed("kill").what, FaultKind::Kill);
  EXPECT_EQ(parsed("stop:rank=0").what, FaultKind::Stop);
  EXPECT_EQ(parsed("throw").what, FaultKind::Throw);
  EXPECT_EQ(parsed("exit").code, 1);
  EXPECT_EQ(parsed("exit:code=7").what, FaultKind::Exit);
  EXPECT_EQ(parsed("exit:code=7").code, 7);
  EXPECT_EQ(parsed("slow:ms=250").what, FaultKind::Slow);
  EXPECT_EQ(parsed("slow:ms=250").slow_ms, 250);
}

TEST(WorkerFaults, NamesTheErrorWithAnExample) {
  EXPECT_EQ(error_of("explode:rank=1"),
            "CPPRUN_FAULTS is 'explode:rank=1': 'explode' is none of kill, stop, exit, throw, "
            "slow; an example is kill:rank=1,epoch=2,attempt=0");
  for (const char* text : {"kill:", "kill:rank", "kill:rank=", "kill:rank=one", "kill:rank=-1",
                           "kill:rank=1,", "kill:host=1", "kill:code=1", "kill:ms=1",
                           "exit:code=256", "slow:ms=86400001", ":rank=1", " "}) {
    EXPECT_NE(error_of(text).find("CPPRUN_FAULTS is '" + std::string(text) + "': '"),
              std::string::npos)
        << text << ": " << error_of(text);
  }
}

TEST(WorkerFaults, SemicolonsSeparateFaultsAndEmptyPartsAreSkipped) {
  for (const char* text : {"exit:epoch=1;stop", "exit:epoch=1;stop;", ";exit:epoch=1;;stop;;"}) {
    const auto faults = parse_faults(text);
    ASSERT_TRUE(faults.ok()) << text << ": " << faults.error().text;
    ASSERT_EQ(faults->size(), 2U) << text;
    EXPECT_EQ((*faults)[0].text, "exit:epoch=1");
    EXPECT_EQ((*faults)[1].fault.what, FaultKind::Stop);
  }
  for (const char* text : {"", ";", ";;"}) {
    const auto faults = parse_faults(text);
    EXPECT_TRUE(faults.ok() && faults->empty()) << text;
  }
}

TEST(WorkerFaults, AnErrorShowsTheWholeValue) {
  EXPECT_EQ(
      error_of("kill:rank=1;exit:cod=3;"),
      "CPPRUN_FAULTS is 'kill:rank=1;exit:cod=3;': 'cod' is none of rank, node, step, epoch, "
      "attempt, round, phase, nor code (0 to 255) of an exit, nor ms (to a day) of a slow; an "
      "example is kill:rank=1,epoch=2,attempt=0");
}

TEST(WorkerFaults, EveryPlaceNamedInAnErrorIsValid) {
  EXPECT_EQ(parsed("kill:node=2").node, 2);
  EXPECT_EQ(parsed("kill:phase=saving").phase, FaultPhase::Saving);
}

TEST(WorkerFaults, OmittedFieldsMatchEverything) {
  const FaultPlace place{.rank = 1, .attempt = 2, .round = 3, .step = 4, .epoch = 5};
  EXPECT_TRUE(fits(parsed("kill"), place));
  EXPECT_TRUE(fits(parsed("kill:rank=1,attempt=2,round=3,step=4,epoch=5"), place));
  EXPECT_FALSE(fits(parsed("kill:rank=0"), place));
  EXPECT_FALSE(fits(parsed("kill:attempt=0"), place));
  EXPECT_FALSE(fits(parsed("kill:round=0"), place));
  EXPECT_FALSE(fits(parsed("kill:step=0"), place));
  EXPECT_FALSE(fits(parsed("kill:epoch=0"), place));
}

TEST(WorkerFaults, APlaceWithoutStepsTakesNoStep) {
  const FaultPlace start{.rank = 0, .attempt = 0, .round = 0};
  EXPECT_FALSE(fits(parsed("kill:step=0"), start));
  EXPECT_FALSE(fits(parsed("kill:epoch=0"), start));
  EXPECT_TRUE(fits(parsed("kill:rank=0"), start));
}

}  // namespace
}  // namespace cpprun::worker

// The division of a job's time: each phase, and that all phases sum to the time that has passed.
#include "common/goodput/goodput_account.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using enum GoodputPhase;

Instant at(Duration since_start) { return Instant() + since_start; }

class Account : public testing::Test {
 protected:
  // A round that has formed at `from`, is spawned 1 s later, connects 2 s after that and makes its
  // first step after 3 s more.
  void trains_from(Duration from, int64_t first_step, int64_t best_step = -1) {
    account.form(at(from), best_step);
    account.run(at(from + 1s));
    account.connect(at(from + 3s));
    account.step(at(from + 6s), first_step);
  }
  void fails(Duration from, Duration until) {
    account.fail();
    account.stop(at(from));
    account.leave(at(until));
  }
  Goodput goodput(Duration now) const {
    Goodput all = account.at(at(now));
    EXPECT_EQ(all.total(), now);
    return all;
  }

  GoodputAccount account;
  Account() {
    account.begin(at(0s));
    account.wait(at(1s));
  }
};

TEST_F(Account, AGoodRun) {
  trains_from(10s, 1);
  account.beat(at(96s), 81, 0s);
  account.leave(at(100s));
  const Goodput all = goodput(101s);
  EXPECT_EQ(all[Waiting], 9s + 1s);
  EXPECT_EQ(all[Starting], 1s + 1s);
  EXPECT_EQ(all[Importing], 2s);
  EXPECT_EQ(all[Initialising], 3s);
  EXPECT_EQ(all[Training], 84s);
  EXPECT_EQ(all.failures, 0);
  EXPECT_EQ(all.restarts, 0);
}

TEST_F(Account, StepsThatWereDoneAreRedone) {
  trains_from(10s, 1);
  account.beat(at(56s), 41, 0s);
  fails(60s, 62s);
  trains_from(63s, 21);               // it resumes from the snapshot of step 20
  account.beat(at(79s), 31, 0s);      // 10 steps in 10 s
  EXPECT_TRUE(account.is_redoing());  // until step 41
  account.beat(at(99s), 51, 0s);      // 20 steps in 20 s
  EXPECT_FALSE(account.is_redoing());
  const Goodput all = goodput(99s);
  EXPECT_EQ(all[Redone], 10s + 10s);
  EXPECT_EQ(all[Training], 44s + 10s);
  EXPECT_EQ(all[Stopping], 2s);
  EXPECT_EQ(all.failures, 1);
  EXPECT_EQ(all.restarts, 1);
  EXPECT_EQ(account.best_step(), 51);
}

TEST_F(Account, ANewNodeLearnsFromTheJobWhichStepsWereDone) {
  trains_from(10s, 1, 30);
  account.beat(at(45s), 30, 0s);
  account.beat(at(50s), 35, 0s);
  EXPECT_EQ(goodput(50s)[Redone], 29s);
  EXPECT_EQ(goodput(50s)[Training], 5s);
}

TEST_F(Account, ARoundThatFailsAgainBeforeTheOldStepIsRedoneWhole) {
  trains_from(10s, 1);
  account.beat(at(56s), 41, 0s);
  fails(60s, 62s);
  trains_from(63s, 21);
  fails(75s, 76s);
  EXPECT_EQ(goodput(76s)[Redone], 6s);
  EXPECT_EQ(account.best_step(), 41);
}

TEST_F(Account, TimeOfSavesIsNoTraining) {
  trains_from(10s, 1);
  account.beat(at(26s), 11, 3s);
  account.beat(at(36s), 21, 3s);
  account.beat(at(46s), 31, 5s);
  EXPECT_EQ(goodput(46s)[Saving], 5s);
  EXPECT_EQ(goodput(46s)[Training], 25s);
}

TEST_F(Account, ASaveLongerThanItsStretchGoesIntoTheNext) {
  trains_from(10s, 1);
  account.beat(at(20s), 2, 6s);
  account.beat(at(30s), 3, 6s);
  EXPECT_EQ(goodput(30s)[Saving], 6s);
}

TEST_F(Account, AHangBeginsWithTheLastProgress) {
  trains_from(10s, 1);
  account.beat(at(50s), 41, 0s);
  account.hang(at(50s));
  fails(80s, 85s);
  const Goodput all = goodput(85s);
  EXPECT_EQ(all[Hanging], 30s);
  EXPECT_EQ(all[Training], 34s);
  EXPECT_EQ(all[Stopping], 5s);
}

TEST_F(Account, WorkersThatReportNothingAreUnknown) {
  account.form(at(10s), -1);
  account.run(at(11s));
  account.connect(at(12s));
  fails(40s, 41s);
  EXPECT_EQ(goodput(41s)[Unknown], 29s);
  EXPECT_FALSE(goodput(41s).share());
  account.form(at(41s), -1);
  account.run(at(42s));
  account.hang(at(50s));
  fails(60s, 61s);
  EXPECT_EQ(goodput(61s)[Unknown], 29s + 8s);
  EXPECT_EQ(goodput(61s)[Hanging], 10s);
}

TEST_F(Account, WorkersThatReportStepsAndEndBeforeOneWereInitialising) {
  account.form(at(10s), -1);
  account.run(at(11s));
  account.connect(at(15s));
  account.expect_steps();
  fails(21s, 22s);
  EXPECT_EQ(goodput(22s)[Importing], 4s);
  EXPECT_EQ(goodput(22s)[Initialising], 6s);
}

TEST_F(Account, AWorkerMayStepBeforeTheLastOneIsSpawned) {
  account.form(at(10s), -1);
  account.connect(at(11s));
  account.step(at(12s), 1);
  account.run(at(13s));
  account.beat(at(20s), 8, 0s);
  EXPECT_EQ(goodput(20s)[Training], 7s);
}

TEST_F(Account, AReaderChangesNothing) {
  trains_from(10s, 1);
  const Goodput before = account.divided();
  EXPECT_EQ(goodput(50s)[Training], 34s);
  EXPECT_EQ(account.divided().total(), before.total());
  account.beat(at(50s), 30, 4s);
  EXPECT_EQ(goodput(50s)[Saving], 4s);
}

// Any calls at any times, also backwards: nothing is lost, nothing counts twice, nothing shrinks.
TEST(GoodputAccount, PhasesSumToTheTimeWhateverComes) {
  std::mt19937_64 random(27);
  for (int run = 0; run < 300; ++run) {
    GoodputAccount account;
    account.begin(at(0s));
    Duration now{};
    Goodput last;
    for (int call = 0; call < 200; ++call) {
      now += Duration(random() % 3'000'000'001);
      const Instant when = at(now - Duration(random() % 4'000'000'000) * (random() % 3 == 0));
      const auto step = static_cast<int64_t>(random() % 50);
      switch (random() % 10) {
        case 0: account.wait(when); break;
        case 1: account.form(when, step - 1); break;
        case 2: account.run(when); break;
        case 3: account.connect(when); break;
        case 4: account.step(when, step); break;
        case 5: account.beat(when, step, Duration(random() % 9'000'000'000)); break;
        case 6: account.hang(when); break;
        case 7: account.stop(when); break;
        case 8: account.leave(when); break;
        default: account.expect_steps(); break;
      }
      for (size_t i = 0; i < kGoodputPhases; ++i) {
        ASSERT_GE(account.divided().spent[i], last.spent[i]);
      }
      last = account.divided();
      const Goodput all = account.at(at(now));
      ASSERT_EQ(all.total(), std::max(now, last.total()));
    }
  }
}

GoodputRecord record_of_two() {
  GoodputRecord record;
  record.earlier.submissions = record.earlier.failures = 1;
  record.earlier[Training] = 1h;
  record.newest.restarts = 2;
  record.newest[Training] = 10min;
  record.newest[Waiting] = 1min;
  record.best_step = 20;
  return record;
}

TEST_F(Account, ContinuesFromEarlierSubmissions) {
  account.resume_from(record_of_two());
  trains_from(10s, 11);
  account.beat(at(36s), 31, 0s);  // 20 steps in 20 s, of which 10 had been done
  const Goodput all = account.at(at(36s));
  EXPECT_EQ(all.total(), 1h + 11min + 36s);
  EXPECT_EQ(all[Training], 1h + 10min + 11s);
  EXPECT_EQ(all[Redone], 9s);
  EXPECT_EQ(all.submissions, 3);
  EXPECT_EQ(all.failures, 1);
  EXPECT_EQ(all.restarts, 2);
  const Goodput own = account.own(at(36s));
  EXPECT_EQ(own.total(), 36s);
  EXPECT_EQ(own[Training], 11s);
  EXPECT_EQ(own.submissions, 1);
  EXPECT_EQ(own.restarts, 0);
}

TEST_F(Account, EachSubmissionContinuesFromTheOneBefore) {
  account.resume_from(record_of_two());
  const GoodputRecord left = account.record(at(30s));
  EXPECT_EQ(left.best_step, 20);
  GoodputAccount next;
  next.begin(at(100s));
  next.resume_from(left);
  EXPECT_EQ(next.at(at(105s)).total(), 1h + 11min + 35s);
  EXPECT_EQ(next.at(at(105s)).submissions, 4);
  EXPECT_EQ(next.own(at(105s)).total(), 5s);
}

TEST_F(Account, ANodeThatComesLateDoesNotCountItsSubmissionTwice) {
  const GoodputRecord of_this_one = record_of_two();
  account.resume_from(of_this_one);
  account.join(of_this_one);
  EXPECT_EQ(account.at(at(30s)).total(), 1h + 11min + 30s);
  EXPECT_EQ(account.at(at(30s)).submissions, 2);
  EXPECT_EQ(account.own(at(30s)).total(), 11min + 30s);
  EXPECT_EQ(account.record(at(30s)).earlier, of_this_one.earlier);
}

}  // namespace
}  // namespace cpprun::test

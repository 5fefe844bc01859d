// Work::then over a backend's work that the test completes by hand, and over Gloo in a world of
// one.
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "tests/sdk/dist/hand_work.hpp"

namespace cpprun::dist {
namespace {

// Ends its future before itself, as Gloo's collectives do.
class FutureHandWork : public HandWork {
 public:
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  void end(const std::exception_ptr& error = nullptr) {
    if (error) {
      future_->setError(error);
    } else {
      future_->markCompleted(std::vector<at::Tensor>());
    }
    finish(error);
  }

 private:
  const c10::intrusive_ptr<c10::ivalue::Future> future_ =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
};

class WorkThen : public ::testing::Test {
 protected:
  std::function<void()> note(const std::string& text) {
    return [this, text] { notes_.push_back(text); };
  }
  static std::function<void()> failing() {
    return [] { throw std::out_of_range("out of ideas"); };
  }

  std::vector<std::string> notes_;
  const c10::intrusive_ptr<FutureHandWork> native_ = c10::make_intrusive<FutureHandWork>();
  Made made_ = Made::make(native_, Work::State::Kind::Polled, note("result"));
};

using testing::ElementsAre;

TEST_F(WorkThen, RunsAfterTheResultIsReadyInTheThreadThatEndsTheWork) {
  std::thread::id ran_in;
  Work next = made_.work.then([&] {
    notes_.push_back("callback");
    ran_in = std::this_thread::get_id();
  });
  EXPECT_FALSE(next.is_completed());
  EXPECT_FALSE(made_.work.is_completed());
  EXPECT_THAT(notes_, ElementsAre());
  std::thread ender([&] { native_->end(); });
  const auto expected = ender.get_id();
  next.wait();
  made_.work.wait();
  ender.join();
  EXPECT_THAT(notes_, ElementsAre("result", "callback"));
  EXPECT_EQ(ran_in, expected);
}

TEST_F(WorkThen, RunsAtOnceIfTheWorkHasEnded) {
  native_->end();
  Work next = made_.work.then(note("first"));
  EXPECT_THAT(notes_, ElementsAre("result", "first"));
  made_.work.wait();
  made_.work.then(note("second"));
  EXPECT_THAT(notes_, ElementsAre("result", "first", "second"));
  EXPECT_TRUE(next.is_completed());
  Work().then(note("of an empty work")).wait();
  EXPECT_EQ(notes_.back(), "of an empty work");
}

TEST_F(WorkThen, RunsSeveralCallbacksInTheOrderOfTheCalls) {
  Work first = made_.work.then(note("first"));
  Work second = made_.work.then(note("second"));
  Work after_first = first.then(note("after first"));
  native_->end();
  after_first.wait();
  second.wait();
  EXPECT_THAT(notes_, ElementsAre("result", "first", "after first", "second"));
}

TEST_F(WorkThen, RunsIfBothWorksAreDropped) {
  made_.work.then(note("callback"));
  made_.work = Work();
  native_->end();
  EXPECT_THAT(notes_, ElementsAre("result", "callback"));
}

TEST_F(WorkThen, ErrorOfTheWorkReachesTheWaitersOfAllWorks) {
  Work next = made_.work.then(note("callback")).then(note("another"));
  native_->end(broken());
  for (Work* work : {&next, &made_.work}) {
    EXPECT_TRUE(work->is_completed());
    EXPECT_NE(work->exception(), nullptr);
    EXPECT_THAT([&] { work->wait(); }, testing::ThrowsMessage<DistNetworkError>(
                                           testing::HasSubstr("call in group: Connection closed")));
  }
  EXPECT_THROW(made_.work.then(note("late")).wait(), DistNetworkError);
  EXPECT_THAT(notes_, ElementsAre());
}

TEST_F(WorkThen, ErrorOfTheWorkBreaksTheGroupThoughNobodyWaits) {
  made_.work.then(note("callback"));
  native_->end(broken());
  EXPECT_THAT(made_.group->health.broken(), testing::HasSubstr("Connection closed by peer"));
}

TEST_F(WorkThen, ErrorOfTheCallbackReachesTheWaitersOfTheReturnedWork) {
  Work failed = made_.work.then(failing());
  Work next = failed.then(note("after the failed one"));
  Work number = made_.work.then([] { throw 7; });
  native_->end();
  EXPECT_TRUE(failed.is_completed());
  EXPECT_THROW(failed.wait(), std::out_of_range);
  EXPECT_THROW(next.wait(), std::out_of_range);
  EXPECT_THROW(number.wait(), int);
  EXPECT_THROW(made_.work.then(failing()).wait(), std::out_of_range);
  made_.work.wait();
  EXPECT_EQ(made_.group->health.broken(), "");
  EXPECT_THAT(notes_, ElementsAre("result"));
}

TEST_F(WorkThen, TheCallbackMayWaitForItsWorkWhileAnotherThreadWaits) {
  Work next = made_.work.then([&] {
    made_.work.wait();
    notes_.push_back("callback");
  });
  std::thread waiter([work = made_.work]() mutable { work.wait(); });
  native_->end();
  waiter.join();
  next.wait();
  EXPECT_THAT(notes_, ElementsAre("result", "callback"));
}

TEST_F(WorkThen, TheCallbackHasTheCallersGradMode) {
  bool with_gradients = true;
  {
    const at::NoGradGuard no_grad;
    made_.work.then([&] { with_gradients = at::GradMode::is_enabled(); });
  }
  native_->end();
  EXPECT_FALSE(with_gradients);
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST_F(WorkThen, RefusesSendsAndWorksWithoutAFuture) {
  const auto sent = Made::make(native_, Work::State::Kind::WaitedOnce);
  EXPECT_THROW(sent.work.then(note("callback")), DistUnsupportedError);
  native_->end();
  const auto plain = Made::make(c10::make_intrusive<HandWork>(), Work::State::Kind::Polled);
  EXPECT_THROW(plain.work.then(note("callback")), DistUnsupportedError);
  EXPECT_EQ(plain.group->health.broken(), "");
}

TEST(WorkThenOverGloo, RunsAfterTheDivisionOfAnAverage) {
  InitOptions options;
  options.backend = "gloo";
  options.store = make_hash_store();
  options.rank = 0;
  options.world_size = 1;
  const auto group = init_process_group(options);
  for (int i = 0; i < 100; ++i) {
    const auto x = torch::full({2, 3}, 6.0).t();
    Work work = all_reduce(x, ReduceOp::AVG, {.async_op = true});
    work.then([x] { x.add_(1); }).then([x] { x.mul_(2); }).wait();
    EXPECT_TRUE(at::equal(x, torch::full({3, 2}, 14.0)));
  }
  EXPECT_THROW(barrier({.async_op = true}).then([] { throw 7; }).wait(), int);
}

}  // namespace
}  // namespace cpprun::dist

#include "common/loop/effect_runner.hpp"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace cpprun {
namespace {

struct Text {
  std::string text;
};
struct Number {
  int number = 0;
};
using TestEffects = std::vector<std::variant<Text, Number>>;

struct Core {
  void on_text(Instant now, const std::string& text, TestEffects& effects) {
    at = now;
    effects.emplace_back(Text{text});
  }
  void on_pair(Instant, const std::string& text, int number, TestEffects& effects) {
    effects.emplace_back(Text{text});
    effects.emplace_back(Number{number});
  }
  void on_time(Instant, TestEffects& effects) {
    deadline = Instant::never();
    effects.emplace_back(Text{"time"});
  }
  Instant next_deadline() const { return deadline; }

  Instant at;
  Instant deadline = Instant::never();
};

using Texts = std::vector<std::string>;

struct EffectRunnerTest : testing::Test {
  void carry_out(const Text& effect) {
    done.push_back(effect.text);
    if (effect.text == "nested") {
      runner.run(&Core::on_text, "inner");
      done.push_back("after inner");
    }
    if (effect.text == "close") runner.close();
  }
  void carry_out(const Number& effect) { done.push_back(std::to_string(effect.number)); }

  boost::asio::io_context loop;
  Core core;
  Texts done;
  bool may_carry_out = true;
  EffectRunner<Core, TestEffects> runner{
      loop,
      core,
      [this](const auto& effect) { carry_out(effect); },
      {.after_event = [this](Instant) { done.push_back("event"); },
       .may_carry_out = [this] { return may_carry_out; },
       .after_effects = [this] { done.push_back("end"); }}};
};

TEST_F(EffectRunnerTest, CarriesOutEffectsInOrder) {
  const Instant before = boot_now();
  runner.run(&Core::on_text, "a");
  EXPECT_GE(core.at, before);
  runner.run(&Core::on_pair, "b", 3);
  EXPECT_EQ(done, (Texts{"event", "a", "end", "event", "b", "3", "end"}));
}

TEST_F(EffectRunnerTest, AcceptsAFunctionAsEvent) {
  runner.run([](Core& c, Instant now, TestEffects& effects) { c.on_text(now, "a", effects); });
  EXPECT_EQ(done, (Texts{"event", "a", "end"}));
}

TEST_F(EffectRunnerTest, EffectsOfANestedEventFollowThoseThatWait) {
  runner.run(&Core::on_pair, "nested", 3);
  EXPECT_EQ(done, (Texts{"event", "nested", "event", "after inner", "3", "inner", "end"}));
}

TEST_F(EffectRunnerTest, EffectsWaitForResume) {
  may_carry_out = false;
  runner.run(&Core::on_text, "a");
  runner.run(&Core::on_text, "b");
  done.clear();
  may_carry_out = true;
  runner.resume();
  EXPECT_EQ(done, (Texts{"a", "b", "end"}));
}

TEST_F(EffectRunnerTest, CallsTheCoreAtItsDeadline) {
  core.deadline = Instant();
  runner.resume();
  loop.run();
  EXPECT_EQ(done, (Texts{"end", "event", "time", "end"}));
}

TEST_F(EffectRunnerTest, CloseDropsEffectsEventsAndTheDeadline) {
  core.deadline = Instant();
  runner.run(&Core::on_pair, "close", 3);
  runner.run(&Core::on_text, "a");
  loop.run();
  EXPECT_EQ(done, (Texts{"event", "close", "end"}));
}

}  // namespace
}  // namespace cpprun

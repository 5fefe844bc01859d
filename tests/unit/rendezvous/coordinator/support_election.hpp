// A fixture for tests of Election: it sends requests, the test answers.
#pragma once

#include <gtest/gtest.h>

#include "common/limits/election.hpp"
#include "rendezvous/coordinator/election.hpp"
#include "rendezvous/protocol/worker_lease_duration.hpp"
#include "tests/unit/rendezvous/client/core/support_wire.hpp"

namespace cpprun::test {

inline constexpr Duration kL = std::chrono::seconds(5);

inline control::Leader place_of(uint64_t incarnation) {
  return {NodeId{"n" + std::to_string(incarnation), Incarnation(incarnation)}, "10.0.0.1", 4711};
}

class ElectionTest : public testing::Test {
 protected:
  // ---- events
  void starts() {
    call([&](election::Effects& e) { core.start(now, e); });
  }
  void respond(const election::Response& response) {
    const uint64_t id = asks.back().id;
    call([&](election::Effects& e) { core.on_response(now, id, response, e); });
  }
  void respond_to(uint64_t id, const election::Response& response) {
    call([&](election::Effects& e) { core.on_response(now, id, response, e); });
  }
  void is_led(bool is_led) {
    call([&](election::Effects& e) { core.set_has_leader(now, is_led, e); });
  }
  void writes(const control::PersistedJobState& facts) {
    call([&](election::Effects& e) { core.write(now, facts, e); });
  }
  void leaves(bool is_idle) {
    call([&](election::Effects& e) { core.leave(now, is_idle, e); });
  }
  void passes(Duration duration) {
    const Instant end = now + duration;
    while (core.next_deadline() <= end) {
      now = std::max(now, core.next_deadline());
      call([&](election::Effects& e) { core.on_time(now, e); });
      ASSERT_GT(core.next_deadline(), now) << "a busy loop: the deadline stays in the past";
    }
    now = end;
  }
  template <class Call>
  void call(Call what) {
    election::Effects effects;
    what(effects);
    for (election::Effect& effect : effects) {
      if (const auto* ask = std::get_if<election::SendRequest>(&effect)) asks.push_back(*ask);
      done.push_back(std::move(effect));
    }
  }

  // ---- setup
  static election::KeyValue key(const std::string& value, int64_t revision, int64_t lease = 0) {
    return election::KeyValue{value, revision, revision, lease};
  }
  // No leader exists, and etcd grants every request.
  void wins(std::optional<control::PersistedJobState> facts = std::nullopt, int64_t revision = 7) {
    starts();
    respond(election::ReadResult{true, revision - 1, {}, {}});
    respond(election::Granted{99, 5});
    election::ReadResult seen{true, revision, {}, {}};
    if (facts) seen.facts = key(control::encode_job_state(*facts), 4);
    respond(seen);
  }
  static control::PersistedJobState facts_of(int64_t term, int64_t round) {
    control::PersistedJobState facts;
    facts.term = Term(term);
    facts.first_term = Term(1);
    facts.round = RoundNumber(round);
    facts.group_size = 3;
    return facts;
  }

  // ---- expectations
  template <class T>
  const T* asked() const {
    return asks.empty() ? nullptr : std::get_if<T>(&asks.back().what);
  }
  template <class T>
  uint64_t id_of() const {
    for (auto it = asks.rbegin(); it != asks.rend(); ++it) {
      if (std::holds_alternative<T>(it->what)) return it->id;
    }
    return 0;
  }
  template <class T>
  const T* effect() const {
    return newest<T>(done);
  }
  template <class T>
  int64_t times() const {
    return count_of<T>(done);
  }

  Election core{Election::Options{"job", place_of(1), kL}};
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  std::vector<election::SendRequest> asks;
  std::vector<election::Effect> done;
};

}  // namespace cpprun::test

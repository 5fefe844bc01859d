// A message of every kind with random content.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/control_fields.hpp"

namespace cpprun::test {

class RandomMessages {
 public:
  explicit RandomMessages(uint64_t seed) : random_(seed) {}

  control::AgentMessage agent(size_t kind) { return make<control::AgentMessage>(kind); }
  control::CoordinatorMessage coordinator(size_t kind) {
    return make<control::CoordinatorMessage>(kind);
  }

 private:
  template <class Variant, size_t I = 0>
  Variant make(size_t kind) {
    if constexpr (I + 1 < std::variant_size_v<Variant>) {
      if (kind != I) return make<Variant, I + 1>(kind);
    }
    std::variant_alternative_t<I, Variant> message;
    fill(message);
    return message;
  }

  int64_t number() {
    int shift = static_cast<int>(random_() % 64);
    auto wide = static_cast<int64_t>(random_());
    return random_() % 8 == 0 ? (random_() % 2 == 0 ? INT64_MIN : INT64_MAX) : wide >> shift;
  }
  void fill(int64_t& value) { value = number(); }
  void fill(int& value) { value = static_cast<int>(number()); }
  void fill(bool& value) { value = random_() % 2 == 0; }
  void fill(std::string& value) {
    value.resize(random_() % 40);
    for (char& c : value) c = static_cast<char>(random_());  // any byte, 0 and non-UTF-8 too
  }
  void fill(Duration& value) { value = Duration(number() / 16); }
  void fill(Instant& value) { value = Instant::from_nanoseconds(number()); }
  void fill(WallTime& value) { value.microseconds = number(); }
  void fill(Incarnation& value) { value.value = random_(); }
  template <class Tag>
  void fill(Id<Tag, int64_t>& value) {
    value.value = number();
  }
  void fill(control::ReportedPhase& value) {
    value = static_cast<control::ReportedPhase>(random_() % 4);
  }
  void fill(PreloadState& value) { value = static_cast<PreloadState>(random_() % kPreloadStates); }
  void fill(control::StopCause& value) { value = static_cast<control::StopCause>(random_() % 7); }
  void fill(control::LogGap& value) { value = static_cast<control::LogGap>(random_() % 4); }
  void fill(control::RestartCharge& value) {
    value = static_cast<control::RestartCharge>(random_() % 4);
  }
  void fill(control::AdminCommandKind& value) {
    value = static_cast<control::AdminCommandKind>(random_() % 6);
  }
  void fill(control::CheckState& value) { value = static_cast<control::CheckState>(random_() % 3); }
  void fill(control::Exclusion& value) { value = static_cast<control::Exclusion>(random_() % 3); }
  void fill(StragglerPolicy& value) { value = static_cast<StragglerPolicy>(random_() % 3); }
  template <class T>
  void fill(std::vector<T>& values) {
    values.resize(random_() % 5);
    for (T& value : values) fill(value);
  }
  template <class T>
  void fill(std::optional<T>& value) {
    if (random_() % 2 == 0) fill(value.emplace());
  }
  template <class T>
  void fill(T& message) {
    control::fields([&](const char*, auto& field) { fill(field); }, message);
  }

  std::mt19937_64 random_;
};

}  // namespace cpprun::test

// StateFields: lets one list of a class's members serve both state_dict and load_state_dict.
//
//   void StepLR::fields(StateFields& fields) { fields.kind("StepLR"); fields("gamma", gamma_); }
//
// Numbers only. Private to optim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

class StateFields {
 public:
  static StateFields saving() { return StateFields(nullptr); }
  // With `is_trial`, only checks the state and changes no member.
  static StateFields loading(const SchedulerState& state, bool is_trial) {
    StateFields fields(&state);
    fields.is_trial_ = is_trial;
    return fields;
  }

  // The name of the class, saved as "kind:StepLR". Throws std::invalid_argument for a state of
  // another class.
  void kind(const std::string& name);
  // `T`: double, int64_t or bool.
  template <class T>
  void operator()(const std::string& name, T& value) {
    if (is_saving()) {
      saved_[name] = static_cast<double>(value);
    } else if (const double loaded = read(name); !is_trial_) {
      value = static_cast<T>(loaded);
    }
  }
  // The state has no lengths: a list ends at the first missing index.
  template <class T>
  void operator()(const std::string& name, std::vector<T>& values) {
    const auto item = [&](size_t i) { return name + '.' + std::to_string(i); };
    std::vector<T> all = is_saving() ? values : std::vector<T>();
    while (!is_saving() && loaded_->count(item(all.size()))) all.emplace_back();
    for (size_t i = 0; i < all.size(); ++i) (*this)(item(i), all[i]);
    if (!is_saving() && !is_trial_) values = std::move(all);
  }

  bool is_saving() const { return loaded_ == nullptr; }
  bool is_trial() const { return is_trial_; }
  const SchedulerState& saved() const { return saved_; }
  // Throws std::invalid_argument if the state has numbers that no field read.
  void check_all_used() const;

 private:
  explicit StateFields(const SchedulerState* loaded) : loaded_(loaded) {}
  double read(const std::string& name);

  const SchedulerState* loaded_;
  SchedulerState saved_;  // saving: the numbers written; loading: those read
  bool is_trial_ = false;
};

}  // namespace cpprun::optim

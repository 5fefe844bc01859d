#include "cpprun/optim/state_fields.hpp"

#include <stdexcept>

namespace cpprun::optim {

double StateFields::read(const std::string& name) {
  const auto found = loaded_->find(name);
  if (found == loaded_->end()) {
    throw std::invalid_argument("the state has no '" + name +
                                "': it is of another kind of scheduler, or of other groups");
  }
  saved_.insert(*found);
  return found->second;
}

void StateFields::kind(const std::string& name) {
  const std::string prefix = "kind:";
  if (is_saving()) {
    saved_[prefix + name] = 1;
    return;
  }
  const auto found = loaded_->lower_bound(prefix);
  if (found == loaded_->end() || found->first != prefix + name) {
    const bool has_kind = found != loaded_->end() && found->first.starts_with(prefix);
    throw std::invalid_argument(
        "the state is not of a " + name +
        (has_kind ? ", it is of a " + found->first.substr(prefix.size()) : " or any scheduler"));
  }
  saved_.insert(*found);
}

template <class T>
void StateFields::number(const std::string& name, T& value) {
  if (is_saving()) {
    saved_[name] = static_cast<double>(value);
    return;
  }
  const double loaded = read(name);
  if (!is_trial_) value = static_cast<T>(loaded);
}

// The state has no lengths: a list ends at the first missing index.
template <class T>
void StateFields::list(const std::string& name, std::vector<T>& values) {
  if (!is_saving()) {
    size_t length = 0;
    while (loaded_->count(name + '.' + std::to_string(length))) ++length;
    std::vector<T> fresh(length);
    for (size_t i = 0; i < length; ++i) number(name + '.' + std::to_string(i), fresh[i]);
    if (!is_trial_) values = std::move(fresh);
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) number(name + '.' + std::to_string(i), values[i]);
}

void StateFields::operator()(const std::string& name, double& value) { number(name, value); }
void StateFields::operator()(const std::string& name, int64_t& value) { number(name, value); }
void StateFields::operator()(const std::string& name, bool& value) { number(name, value); }
void StateFields::operator()(const std::string& name, std::vector<double>& values) {
  list(name, values);
}
void StateFields::operator()(const std::string& name, std::vector<int64_t>& values) {
  list(name, values);
}

void StateFields::check_all_used() const {
  for (const auto& [name, value] : *loaded_) {
    if (!saved_.count(name)) {
      throw std::invalid_argument("the state has a '" + name +
                                  "' that this scheduler does not know: it is of another kind");
    }
  }
}

}  // namespace cpprun::optim

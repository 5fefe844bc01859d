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

void StateFields::check_all_used() const {
  for (const auto& [name, value] : *loaded_) {
    if (!saved_.count(name)) {
      throw std::invalid_argument("the state has a '" + name +
                                  "' that this scheduler does not know: it is of another kind");
    }
  }
}

}  // namespace cpprun::optim

#include "common/shown_state.hpp"

#include <array>
#include <utility>

namespace cpprun {
namespace {

using Word = std::pair<std::string_view, ShownState>;

// A node that leaves still runs its workers until they have saved.
constexpr std::array kAgentStates{
    Word{"joining", ShownState::Waiting},    Word{"starting", ShownState::Starting},
    Word{"running", ShownState::Running},    Word{"stopping", ShownState::Restarting},
    Word{"stopped", ShownState::Restarting}, Word{"done", ShownState::Succeeded},
    Word{"draining", ShownState::Running},   Word{"leaving", ShownState::Stopped},
    Word{"saved", ShownState::Stopped},      Word{"ended", ShownState::Stopped}};

// "finishing": some nodes have finished, and the workers of others run.
constexpr std::array kPhases{
    Word{"recovering", ShownState::Waiting}, Word{"waiting_for_nodes", ShownState::Waiting},
    Word{"running", ShownState::Running},    Word{"stopping", ShownState::Restarting},
    Word{"finishing", ShownState::Running},  Word{"ended", ShownState::Stopped}};

constexpr std::array kOutcomes{
    Word{"success", ShownState::Succeeded}, Word{"stopped", ShownState::Stopped},
    Word{"failure", ShownState::Failed}, Word{"signal", ShownState::Stopped}};

template <size_t N>
ShownState found(const std::array<Word, N>& words, std::string_view word, ShownState otherwise) {
  for (const auto& [name, state] : words) {
    if (name == word) return state;
  }
  return otherwise;
}

int precedence(ShownState state) {
  switch (state) {
    case ShownState::Running: return 6;
    case ShownState::Starting: return 5;
    case ShownState::Restarting: return 4;
    case ShownState::Waiting: return 3;
    case ShownState::Failed: return 2;
    case ShownState::Stopped: return 1;
    case ShownState::Succeeded: return 0;
  }
  return 0;
}

}  // namespace

const char* name_of(ShownState state) {
  switch (state) {
    case ShownState::Waiting: return "waiting";
    case ShownState::Starting: return "starting";
    case ShownState::Running: return "running";
    case ShownState::Restarting: return "restarting";
    case ShownState::Succeeded: return "succeeded";
    case ShownState::Failed: return "failed";
    case ShownState::Stopped: return "stopped";
  }
  return "unknown";
}

ShownState shown_state_of_agent(std::string_view agent_state) {
  return found(kAgentStates, agent_state, ShownState::Waiting);
}

ShownState shown_state_of_phase(std::string_view phase) {
  return found(kPhases, phase, ShownState::Waiting);
}

ShownState shown_state_of_outcome(std::string_view outcome) {
  return found(kOutcomes, outcome, ShownState::Failed);
}

ShownState joined(ShownState one, ShownState other) {
  return precedence(one) >= precedence(other) ? one : other;
}

std::string node_state_text(std::string_view node_state) {
  if (node_state == "idle") return name_of(ShownState::Waiting);
  if (node_state == "done") return name_of(ShownState::Succeeded);
  return std::string(node_state);
}

}  // namespace cpprun

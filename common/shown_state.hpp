// ShownState: the words for the state of a job that ps, status, top, events and the dashboard show.
// The one place that maps the finer states of agents and coordinators to them. Pure.
#pragma once

#include <string>
#include <string_view>

namespace cpprun {

enum class ShownState { Waiting, Starting, Running, Restarting, Succeeded, Failed, Stopped };

// "waiting", "starting", "running", "restarting", "succeeded", "failed", "stopped".
const char* name_of(ShownState state);

// From the state of an agent (docs/protocol.md, "Admin socket"): what it means for the job. An
// unknown word counts as waiting.
ShownState shown_state_of_agent(std::string_view agent_state);
// From a coordinator's phase (docs/protocol.md, "HTTP") before the job has a result.
ShownState shown_state_of_phase(std::string_view phase);
// From an outcome of a job or an agent: "success", "stopped", "signal"; any other word is a
// failure.
ShownState shown_state_of_outcome(std::string_view outcome);

// The state of a job whose agents report different states: the state of those that are furthest,
// since agents follow one another within milliseconds.
ShownState joined(ShownState one, ShownState other);

// The state of a node in the same words. A node has four more: draining, excluded, silent,
// dead.
std::string node_state_text(std::string_view node_state);

}  // namespace cpprun

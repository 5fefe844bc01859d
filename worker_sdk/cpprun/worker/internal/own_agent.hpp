// The one connection of this process to its agent, and its stop flag. For the sources of the SDK
// only.
#pragma once

#include <cstdint>

#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/internal/agent_socket.hpp"

namespace cpprun::worker {

// The first call connects; if that fails, the process has no agent from then on. Never destroyed,
// because other threads may send heartbeats while the program exits.
AgentSocket& own_agent();

// A heartbeat that does not report the first finished step.
void write_heartbeat(int64_t step, Phase phase);

// The heartbeat of a program that sends none itself: without effect if it does. Programs may call
// what sends it rarely, so a long time without one shows no hang.
void report_progress(int64_t step);

// Training has waited so long for a save. The agent counts that as saving.
void add_saved(int64_t nanoseconds);

// This process has entered another round, for which the agent has emptied the page: reports its
// first step again, and forgets a request to stop.
void begin_round();

// Makes should_stop() true from now on. Any thread; usable in signal handlers.
void request_stop() noexcept;

}  // namespace cpprun::worker

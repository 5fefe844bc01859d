// How an agent has started its workers: forked from a preload process (docs/how-to/preload.md), or
// spawned and why. For people; no decision depends on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/time.hpp"

namespace cpprun {

// Why a worker was spawned. The values are on the wire; new ones come last.
enum class SpawnReason {
  NoPreload,    // the job does not use --preload
  NotPython,    // the workers are no Python programs
  Interpreter,  // PYTHON_EXEC is no Python, or starts one
  Script,       // the script imports none of the modules, so it does not wait for them
  Debugger,     // --debug-rank
  Module,       // a module cannot be imported, or makes forks unsafe
  Process,      // the preload process was killed or stopped
  Fork,         // this fork failed
};
constexpr size_t kSpawnReasons = 8;

// As events, metrics and /status show them.
constexpr const char* name_of(SpawnReason reason) {
  switch (reason) {
    case SpawnReason::NoPreload: return "no_preload";
    case SpawnReason::NotPython: return "not_python";
    case SpawnReason::Interpreter: return "interpreter";
    case SpawnReason::Script: return "script";
    case SpawnReason::Debugger: return "debugger";
    case SpawnReason::Module: return "module";
    case SpawnReason::Process: return "process";
    case SpawnReason::Fork: return "fork";
  }
  return "unknown";
}

enum class PreloadState { Off, Importing, Ready, GivenUp };
constexpr size_t kPreloadStates = 4;

constexpr const char* name_of(PreloadState state) {
  switch (state) {
    case PreloadState::Off: return "off";
    case PreloadState::Importing: return "importing";
    case PreloadState::Ready: return "ready";
    case PreloadState::GivenUp: return "given_up";
  }
  return "unknown";
}

// In all rounds so far, unless noted.
struct WorkerStarts {
  int64_t forked = 0;
  int64_t spawned = 0;
  std::vector<int64_t> spawned_by{};         // by SpawnReason; may be shorter or longer
  PreloadState preload = PreloadState::Off;  // when the round started
  Duration import_time{};                    // of the preload process; each fork saves it
  Duration saved_time{};                     // by all forks
  // Memory that a forked worker of the newest round shares with others: Rss minus Pss.
  int64_t shared_bytes = 0;
  bool operator==(const WorkerStarts&) const = default;

  int64_t spawned_for(SpawnReason reason) const {
    const auto at = static_cast<size_t>(reason);
    return at < spawned_by.size() ? spawned_by[at] : 0;
  }
  void count_spawn(SpawnReason reason) {
    const auto at = static_cast<size_t>(reason);
    spawned_by.resize(std::max(spawned_by.size(), kSpawnReasons));
    ++spawned_by[at];
    ++spawned;
  }
};

}  // namespace cpprun

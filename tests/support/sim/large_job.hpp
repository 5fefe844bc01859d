// LargeJob: weeks of a job of up to 131,072 workers under the failure rates that large clusters
// report, failure by failure. It decides with the cores of the product: HostLedger excludes,
// RestartBudgets charges, save_interval.hpp decides when to save, GoodputAccount divides the time.
// Everything else is a time from a table: measured on this project, published, or assumed;
// docs/goodput.md names the source of each.
//
// Pure and deterministic: the same options give the same result.
#pragma once

#include <cstdint>
#include <string>

#include "common/goodput/goodput.hpp"
#include "common/time.hpp"

namespace cpprun::sim {

// What the job uses of the product.
struct LargeJobMeans {
  bool spares = false;        // spare nodes, --exclude-after=2, hang detection
  bool memory = false;        // snapshots in memory instead of blocking saves to disk
  bool preload = false;       // workers are forked from a process with their imports
  bool in_process = false;    // survivors keep their processes and their newest state
  bool small_groups = false;  // and only the communicators of the failed worker are rebuilt
  bool always_stay = false;   // also after several failed recoveries, which cpprun does not do
};

// Times of the parts of a recovery. Defaults: docs/goodput.md.
struct LargeJobTimes {
  Duration step = seconds(5);
  Duration stop = seconds(1);       // of workers, until all are gone
  Duration regroup = seconds(0.1);  // instead, of survivors
  Duration restart = seconds(0.2);  // of the launchers, and this for each node:
  Duration restart_per_node = seconds(0.0001);
  Duration loss_noticed = seconds(5);   // of a node that goes silent
  Duration hang_noticed = seconds(60);  // with hang detection; else NCCL's watchdog:
  Duration watchdog = seconds(600);
  Duration replacement = seconds(600);     // until the scheduler has another node
  Duration operator_acts = seconds(1800);  // until somebody removes a host that fails again
  Duration cleared = seconds(14400);       // until the record of an excluded host is cleared
  Duration recurs = seconds(30);           // training until a faulty host fails again, on average
  Duration imports = seconds(61);
  Duration fork = seconds(0.25);
  Duration setup = seconds(90);  // CUDA, model, compilation
  Duration setup_beside_survivors = seconds(5);
  Duration communicators_of_98304 = seconds(265);  // in proportion to the number of ranks
  Duration disk_save = seconds(120);
  Duration disk_load = seconds(60);
  Duration memory_save = seconds(0.051);
  Duration memory_load = seconds(0.7);
  Duration memory_fetch = seconds(8);  // by a node that takes the place of another
  Duration shared_state = seconds(1);  // of a survivor, to one new worker
};

struct LargeJobOptions {
  uint64_t seed = 1;
  int64_t workers = 1024;
  Duration mttf = seconds(7.9 * 3600);
  Duration lasts = seconds(14.0 * 86400);
  LargeJobMeans means{};
  LargeJobTimes times{};
};

struct LargeJobResult {
  Goodput accounted;  // by the product's account
  Duration useful{};  // steps that were kept, times the time of a step
  Duration total{};
  int64_t failures = 0;  // all that were drawn
  int64_t excluded = 0;  // hosts
  int64_t charged = 0;   // restarts that the budget has counted
  int64_t rounds = 0;
  double goodput() const { return to_seconds(useful) / to_seconds(total); }
  double accounted_goodput() const { return accounted.share().value_or(0); }
};

LargeJobResult run_large_job(const LargeJobOptions& options);

}  // namespace cpprun::sim

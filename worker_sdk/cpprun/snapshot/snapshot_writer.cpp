#include "cpprun/snapshot/snapshot_writer.hpp"

#include <pthread.h>
#include <torch/version.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

#include "common/check.hpp"
#include "common/thread/blocked_signals.hpp"
#include "common/version.hpp"
#include "cpprun/snapshot/outcome_codec.hpp"
#include "cpprun/snapshot/save/stage.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/snapshot_notice.hpp"
#include "snapshot_files/folders/commit.hpp"

namespace cpprun::snapshot {
namespace {

using std::chrono::steady_clock;

// Number of the Snapshot in its round, a part of its keys: a process that has been in earlier
// rounds and a new one make the same Snapshots in the same order. One thread, which calls
// collectives.
int next_instance() {
  static int64_t round = -1;
  static int next = 0;
  const int64_t now = worker::environment_or_default().round;
  if (std::exchange(round, now) != now) next = 0;
  return next++;
}

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

// Removes the names of temporary files, which differ in each save.
std::string lasting(std::string why) {
  for (size_t at = why.find("/."); at != std::string::npos; at = why.find("/.", at)) {
    const size_t end = why.find(".tmp", at);
    if (end == std::string::npos) break;
    why.erase(at, end + 4 - at);
  }
  return why;
}

int64_t epoch_of(const std::vector<Tracked>& tracked, const Contents& contents) {
  for (const auto& each : tracked) {
    if (each.name != "epochs_run" && each.name != "epoch" && each.name != "epochs_done") continue;
    for (const auto& content : contents.shared) {
      for (const std::string& key : {each.name, single_key(each)}) {
        if (const auto* number = content.value.find_as<int64_t>(key)) return *number;
      }
    }
  }
  return 0;
}

}  // namespace

SnapshotWriter::SnapshotWriter(const SnapshotLocation& location, const SnapshotComm& comm,
                               FolderGroup& group, InMemorySnapshot& memory,
                               snapshot_files::KeepRule keep)
    : location_(location),
      comm_(comm),
      group_(group),
      memory_(memory),
      keep_(keep),
      instance_(next_instance()) {}

// If an exception ends the training, the save does not wait for other ranks.
SnapshotWriter::~SnapshotWriter() {
  if (std::uncaught_exceptions() > 0) gives_up_ = true;
  wait();
}

bool SnapshotWriter::wait() {
  if (thread_.joinable()) thread_.join();
  return is_well_;
}

// Requires that no job runs.
void SnapshotWriter::start_thread(std::function<Status()> job) {
  CPPRUN_CHECK(!is_busy_);
  wait();
  is_busy_ = true;
  const BlockedSignals blocked;  // the new thread must not run signal handlers of the program
  thread_ = std::thread([this, job = std::move(job)] {
    ::pthread_setname_np(::pthread_self(), "cpprun-saver");  // as profilers and `top -H` show it
    is_well_ = job().ok();
    is_busy_ = false;
  });
}

bool SnapshotWriter::is_busy(int64_t step) {
  if (!comm_.any(is_busy_)) return false;
  if (comm_.is_first() && !has_reported_busy_) {
    std::fprintf(stderr,
                 "cpprun: the snapshot of step %lld is left out: the last one is still being "
                 "written; this is said once\n",
                 static_cast<long long>(step));
  }
  has_reported_busy_ = true;
  return true;
}

void SnapshotWriter::start(const std::vector<Tracked>& tracked, int64_t step, double seconds,
                           const Result<std::string>& sample) {
  const auto began = steady_clock::now();
  group_.forget_if_uncertain();
  const Group& own = group_.get();
  Contents contents = capture(tracked, location_.is_single_file, comm_.rank(), {step, seconds});
  const int64_t epoch = epoch_of(tracked, contents);
  auto staged =
      std::make_shared<Staged>(plan(contents, own.share_of(comm_.rank(), memory_.is_lasting())));
  staged->step = step;
  staged->epoch = epoch;
  const uint64_t bytes = bytes_of(*staged);
  const snapshot_files::SlotLabel label{.step = step,
                                        .round = worker::environment_or_default().round,
                                        .rank = comm_.rank(),
                                        .world_size = comm_.world()};
  // A state that is refused must not overwrite the slot of an earlier one.
  const auto slot =
      sample ? memory_.begin(label, *staged, bytes) : Result<std::span<std::byte>>(sample.error());
  if (slot) copy(contents, *slot, *staged);
  const Status has_slot = slot ? Status() : slot.error();
  if (!store_) store_ = comm_.connect();
  pause_ = seconds_since(began);
  const std::string prefix =
      "cpprun/snapshot/" + std::to_string(instance_) + "/" + std::to_string(saves_++) + "/";
  start_thread([this, staged, has_slot, sample, prefix, context = write_context()] {
    const auto write_began = steady_clock::now();
    auto channel = std::make_unique<StoreChannel>(store_, prefix, gives_up_);
    const Status status =
        has_slot ? write(*staged, context, *sample, *channel) : fail(has_slot.error(), *channel);
    if (last_channel_) last_channel_->delete_keys();
    last_channel_ = std::move(channel);
    writing_ = seconds_since(write_began);
    report(staged->step, status);
    return status;
  });
}

// Returns once every rank has its state in memory, or the reason of the first rank that has not.
Status SnapshotWriter::agree_staged(const Result<std::string>& own, StoreChannel& channel) {
  const Status sent = channel.set("staged/" + std::to_string(comm_.rank()), encode(own));
  if (comm_.is_first()) {
    Status failed;
    for (int rank = 0; rank < comm_.world(); ++rank) {
      const auto received = decode_outcome(channel.get("staged/" + std::to_string(rank)), rank);
      if (!received && failed) failed = received.error();
    }
    const Status reported_all = channel.set("all_staged", encode(failed));
    if (!reported_all) return reported_all;
  }
  const auto all = decode_outcome(channel.get("all_staged"), 0);
  return all ? sent : all.error();
}

Status SnapshotWriter::fail(const Error& why, StoreChannel& channel) {
  static_cast<void>(agree_staged(why, channel));
  return why;
}

// Ranks that write one snapshot have equal parameters, else it is a patchwork that no rank had. The
// first save compares all of them (hints.cpp), each one a sample.
void SnapshotWriter::compare_samples(const std::string& own, int64_t step, const Group& group,
                                     StoreChannel& channel) {
  if (own.empty() || has_reported_drift_ || comm_.rank() != group.leader()) return;
  for (const int rank : group.members) {
    if (rank == comm_.rank()) continue;
    const auto other = decode_outcome(channel.get("staged/" + std::to_string(rank)), rank);
    if (!other || *other == own) continue;
    has_reported_drift_ = true;
    std::fprintf(
        stderr,
        "cpprun: hint: at step %lld parameter '%s' is not the same on ranks %d and %d, and "
        "the snapshot that they write together has each only once: they have drifted "
        "apart (.hints = false silences this)\n",
        static_cast<long long>(step), own.substr(0, own.rfind(' ')).c_str(), comm_.rank(), rank);
    return;
  }
}

Status SnapshotWriter::write(Staged& staged, const WriteContext& context, const std::string& sample,
                             StoreChannel& channel) {
  memory_.write_index(staged);
  if (Status agreed = agree_staged(sample, channel); !agreed) return agreed;
  memory_.complete(staged.step);
  compare_samples(sample, staged.step, context.group, channel);
  const auto path = location_.is_single_file ? write_single_file(staged, context, channel)
                                             : write_folder(staged, context, channel);
  if (!path) return path.error();
  last_path_ = *path;
  // One rank per node reports, so that every agent knows the snapshot.
  if (!location_.is_single_file && comm_.rank() == comm_.node().first_rank) {
    worker::report_snapshot(staged.step, *path);
  }
  return {};
}

WriteContext SnapshotWriter::write_context() {
  const worker::Environment& own = worker::environment_or_default();
  return {.files = &snapshot_files::real_files(),
          .place = location_.path,
          .group = group_.get(),
          .rank = comm_.rank(),
          .world = comm_.world(),
          .keep = keep_,
          .run_id = own.run_id,
          .torch = TORCH_VERSION,
          .cpprun = version(),
          .round = own.round,
          .request_commit = [](int64_t step) -> Status {
            const worker::CommitPermission permission = worker::request_commit(step);
            if (permission) return {};
            return Error{ErrorKind::Refused, permission.why};
          }};
}

// Reports only changes of the outcome: a full disk fails every save for a long time.
void SnapshotWriter::report(int64_t step, const Status& outcome) {
  const std::string why = outcome ? "" : lasting(outcome.error().text);
  if (std::exchange(last_error_, why) == why || !comm_.is_first()) return;
  if (outcome) {
    std::fprintf(stderr, "cpprun: snapshots are written again, from step %lld on\n",
                 static_cast<long long>(step));
  } else {
    std::fprintf(stderr,
                 "cpprun: the snapshot of step %lld was not written: %s; training goes on, and "
                 "each later save tries again\n",
                 static_cast<long long>(step), outcome.error().text.c_str());
  }
}

}  // namespace cpprun::snapshot

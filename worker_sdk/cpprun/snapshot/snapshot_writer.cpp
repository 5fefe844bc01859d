#include "cpprun/snapshot/snapshot_writer.hpp"

#include <torch/version.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

#include "common/check.hpp"
#include "common/version.hpp"
#include "cpprun/snapshot/save/stage.hpp"
#include "cpprun/snapshot/save/staged_agreement.hpp"
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

// Deletes the keys of the save before. No rank reads them: a save begins when no rank is busy with
// the one before in the same thread.
void replace(std::unique_ptr<StoreChannel>& last, std::unique_ptr<StoreChannel> channel) {
  if (last) last->delete_keys();
  last = std::move(channel);
}

}  // namespace

SnapshotWriter::SnapshotWriter(const SnapshotLocation& location, const SnapshotComm& comm,
                               FolderGroup& group, InMemorySnapshot& memory,
                               snapshot_files::KeepRule keep, snapshot_files::FileLayer& files,
                               Duration answer_timeout)
    : location_(location),
      comm_(comm),
      group_(group),
      memory_(memory),
      keep_(keep),
      instance_(next_instance()),
      report_(comm.is_first()),
      files_(files),
      answer_timeout_(answer_timeout) {}

SnapshotWriter::~SnapshotWriter() { end(); }

bool SnapshotWriter::end() {
  if (std::uncaught_exceptions() > 0) gives_up_ = true;
  return wait_for_files().empty();
}

bool SnapshotWriter::wait() {
  const std::string path = wait_for_files();
  return is_staged_ && is_written_ && path.empty();
}

std::string SnapshotWriter::wait_for_files() {
  stager_.wait();  // it ends after the disk's thread has begun
  std::string path;
  disk_.wait([&] {
    path = files_.unanswered(answer_timeout_);
    return !path.empty();
  });
  if (!path.empty() && !std::exchange(has_reported_stall_, true)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(answer_timeout_);
    std::fprintf(stderr,
                 "cpprun: rank %d: the file system of %s has not answered for %lld s, so the "
                 "program does not wait for this snapshot; this message appears once\n",
                 comm_.rank(), path.c_str(), static_cast<long long>(seconds.count()));
  }
  return path;
}

std::string SnapshotWriter::last_path() const {
  const std::scoped_lock lock(path_mutex_);
  return last_path_;
}

SavePlace SnapshotWriter::place_for(int64_t step, bool to_disk) {
  const std::vector<int64_t> of_any = comm_.highest(obstacles());
  const bool is_disk_busy = of_any[0] != 0, is_memory_busy = of_any[1] != 0;
  to_disk = to_disk || of_any[2] != 0;
  if (to_disk && !is_disk_busy) return SavePlace::Disk;
  const SavePlace place = is_memory_busy ? SavePlace::None : SavePlace::Memory;
  if (to_disk && !std::exchange(has_reported_busy_, true) && comm_.is_first()) {
    std::fprintf(stderr,
                 "cpprun: the snapshot of step %lld is %s: the last one is still being written; "
                 "this message appears once\n",
                 static_cast<long long>(step),
                 place == SavePlace::None ? "left out" : "in memory only");
  }
  return place;
}

// Of this rank: whether it can't save to disk now, whether it can't save in memory only, whether
// its last write has failed.
std::vector<int64_t> SnapshotWriter::obstacles() {
  if (stager_.is_busy()) return {1, 1, is_written_ ? 0 : 1};
  const bool is_writing = disk_.is_busy();  // the stager has begun this before its own end
  const bool can_keep = group_.get().serves_memory() &&
                        memory_.can_keep(is_writing ? std::optional(written_at_) : std::nullopt);
  return {is_writing ? 1 : 0, can_keep ? 0 : 1, is_written_ ? 0 : 1};
}

void SnapshotWriter::start(const std::vector<Tracked>& tracked, int64_t step, double seconds,
                           bool is_leaders, bool to_disk) {
  const auto began = steady_clock::now();
  stager_.start();
  disk_.start();
  if (!staging_store_) {
    staging_store_ = comm_.connect();
    writing_store_ = comm_.connect();
  }
  if (to_disk) group_.forget_if_uncertain();
  auto save = std::make_shared<Save>(
      Save{{},
           write_context(),
           {},
           "cpprun/snapshot/" + std::to_string(instance_) + "/" + std::to_string(saves_++) + "/",
           to_disk});
  save->is_staged = copy_state(tracked, step, seconds, is_leaders, *save);
  pause_ = seconds_since(began);
  stager_.run([this, save = std::move(save)] { stage(save); });
}

// Error: there is no memory for it.
Status SnapshotWriter::copy_state(const std::vector<Tracked>& tracked, int64_t step, double seconds,
                                  bool is_leaders, Save& save) {
  Contents contents = capture(tracked, location_.is_single_file, comm_.rank(), {step, seconds});
  for (Content& each : contents.shared) {
    for (Storage& storage : each.storages) storage.is_leaders |= is_leaders;
  }
  const int64_t epoch = epoch_of(tracked, contents);
  save.staged = plan(contents, save.context.group.share_of(comm_.rank(), memory_.is_lasting()));
  save.staged.step = step;
  save.staged.epoch = epoch;
  const snapshot_files::SlotLabel label{.step = step,
                                        .round = worker::environment_or_default().round,
                                        .rank = comm_.rank(),
                                        .world_size = comm_.world()};
  const auto written_at = disk_.is_busy() ? std::optional(written_at_) : std::nullopt;
  const auto slot = memory_.begin(label, save.staged, bytes_of(save.staged), written_at);
  if (!slot) return slot.error();
  copy(contents, *slot, save.staged);
  return {};
}

// In the stager.
void SnapshotWriter::stage(const std::shared_ptr<Save>& save) {
  const auto began = steady_clock::now();
  auto channel = std::make_unique<StoreChannel>(staging_store_, save->prefix, gives_up_);
  const Status status = complete(*save, *channel);
  replace(last_staging_, std::move(channel));
  staging_ = seconds_since(began);
  writing_ = staging_.load();
  is_staged_ = status.ok();
  if (!status) {
    if (save->to_disk) is_written_ = false;
    report_.add(save->staged.step, status);
  } else if (save->to_disk) {
    written_at_ = save->staged.slot_at;
    disk_.run([this, save, began] {
      write(*save);
      writing_ = seconds_since(began);
    });
  }
}

Status SnapshotWriter::complete(Save& save, StoreChannel& channel) {
  if (save.is_staged) memory_.write_index(save.staged);
  const Status agreed = agree_on_staged(save.is_staged, comm_, channel);
  if (!save.is_staged) return save.is_staged.error();
  if (agreed) memory_.complete(save.staged.step);
  return agreed;
}

// In the disk's thread.
void SnapshotWriter::write(const Save& save) {
  auto channel = std::make_unique<StoreChannel>(writing_store_, save.prefix, gives_up_);
  const Result<std::string> path = write(save, *channel);
  replace(last_writing_, std::move(channel));
  is_written_ = path.ok();
  report_.add(save.staged.step, path ? Status() : path.error());
}

Result<std::string> SnapshotWriter::write(const Save& save, StoreChannel& channel) {
  const auto path = location_.is_single_file ? write_single_file(save.staged, save.context, channel)
                                             : write_folder(save.staged, save.context, channel);
  if (!path) return path;
  {
    const std::scoped_lock lock(path_mutex_);
    last_path_ = *path;
  }
  // One rank per node reports, so that every agent knows the snapshot.
  if (!location_.is_single_file && comm_.rank() == comm_.node().first_rank) {
    worker::report_snapshot(save.staged.step, *path);
  }
  return path;
}

WriteContext SnapshotWriter::write_context() {
  const worker::Environment& own = worker::environment_or_default();
  return {.files = &files_,
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

}  // namespace cpprun::snapshot

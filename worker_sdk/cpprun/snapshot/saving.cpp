// Snapshot::Impl: copies the state into memory (training thread) and writes it (writing thread).
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "cpprun/snapshot/impl.hpp"
#include "cpprun/snapshot/outcome_codec.hpp"
#include "cpprun/snapshot/save/stage.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/snapshot_notice.hpp"
#include "snapshot_files/folders/commit.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;
using snapshot::Contents;
using snapshot::Group;
using snapshot::Staged;
using snapshot_files::real_files;
using std::chrono::duration;
using std::chrono::steady_clock;

constexpr const char* kDefaultFolder = "snapshots";
constexpr const char* kNoSign = "none";

const worker::Environment& own_environment() {
  static const worker::Environment kNone;
  const Result<worker::Environment>& own = worker::environment();
  return own ? *own : kNone;
}

bool has_single_form(const SnapshotOptions& options) {
  return !options.file.empty() && own_environment().snapshot_dir.empty();
}

std::string place_of(const SnapshotOptions& options) {
  if (!options.file.empty() && !options.dir.empty()) {
    throw std::invalid_argument("a Snapshot has either a folder (.dir) or a file (.file)");
  }
  if (has_single_form(options)) return options.file;
  if (!options.dir.empty()) return options.dir;
  const std::string& told = own_environment().snapshot_dir;
  return told.empty() ? kDefaultFolder : told;
}

int next_instance() {
  static int next = 0;
  return next++;
}

double seconds_since(steady_clock::time_point start) {
  return duration<double>(steady_clock::now() - start).count();
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

int64_t epoch_of(const std::vector<snapshot::Tracked>& tracked, const Contents& contents) {
  for (const auto& each : tracked) {
    if (each.name != "epochs_run" && each.name != "epoch" && each.name != "epochs_done") continue;
    for (const auto& content : contents.shared) {
      const auto* dict = content.value.get_if<pickle::Dict>();
      if (dict == nullptr) continue;
      for (const std::string& key : {each.name, snapshot::single_key(each)}) {
        const pickle::Value* held = dict->find(key);
        const auto* number = held == nullptr ? nullptr : held->get_if<int64_t>();
        if (number != nullptr) return *number;
      }
    }
  }
  return 0;
}

}  // namespace

Snapshot::Impl::Impl(SnapshotOptions given)
    : options(std::move(given)),
      is_single(has_single_form(options)),
      place(place_of(options)),
      instance(next_instance()),
      memory(place + '\n' + options.file) {
  if (options.keep < 1 || options.keep_every < 0) {
    throw std::invalid_argument("a Snapshot keeps at least one, and keep_every is not negative");
  }
  const worker::Environment& own = own_environment();
  neighbours = {ranks.rank() - own.local_rank, own.local_world_size};
}

double Snapshot::Impl::seconds() const {
  return seconds_before + seconds_since(started_at);
}

// One rank of each node creates a marker file. A rank that sees another node's marker shares the
// folder with that node.
const Group& Snapshot::Impl::group() {
  if (known_group) return *known_group;
  Group all;
  if (is_single || ranks.world() == 1) {
    for (int rank = 0; rank < ranks.world(); ++rank) all.members.push_back(rank);
    all.leaders = {0};
    is_group_certain = true;
    return known_group.emplace(std::move(all));
  }
  auto& files = real_files();
  std::string sign;
  if (ranks.rank() == neighbours.first_rank) {
    std::error_code ignored;  // the first save reports the reason
    fs::create_directories(place, ignored);
    sign = "." + snapshot_files::make_nonce() + ".sign";
    if (!files.create(place + "/" + sign)) sign = kNoSign;
  }
  const auto signs = ranks.gather(sign);
  // While a node cannot create its marker, the node's ranks count as a group of their own.
  const bool is_blind = signs[static_cast<size_t>(neighbours.first_rank)] == kNoSign;
  int leader = is_blind ? neighbours.first_rank : ranks.rank();
  is_group_certain = std::find(signs.begin(), signs.end(), kNoSign) == signs.end();
  for (size_t rank = 0; rank < signs.size() && leader == ranks.rank(); ++rank) {
    const bool is_sign = !signs[rank].empty() && signs[rank] != kNoSign;
    if (is_sign && files.exists(place + "/" + signs[rank])) {
      leader = std::min(leader, static_cast<int>(rank));
    }
  }
  const auto leaders = ranks.gather(std::to_string(leader));
  if (!sign.empty() && sign != kNoSign) {
    static_cast<void>(files.remove_file(place + "/" + sign));
  }
  for (int rank = 0; rank < ranks.world(); ++rank) {
    const int of_rank = std::stoi(leaders[static_cast<size_t>(rank)]);
    if (of_rank == leader) all.members.push_back(rank);
    if (of_rank == rank) all.leaders.push_back(rank);
  }
  return known_group.emplace(std::move(all));
}

bool Snapshot::Impl::start_save(int64_t step) {
  if (step < 0) throw std::invalid_argument("a snapshot's step is negative");
  if (ranks.any(saver.is_busy())) {
    if (ranks.is_first() && !has_reported_busy) {
      std::fprintf(stderr,
                   "cpprun: the snapshot of step %lld is left out: the last one is still being "
                   "written; this is said once\n",
                   static_cast<long long>(step));
    }
    has_reported_busy = true;
    return false;
  }
  hint();
  const auto start = steady_clock::now();
  saved_at = seconds();
  if (!is_group_certain) known_group.reset();
  const Group& own = group();
  Contents contents = capture(tracked, is_single, ranks.rank(), {step, saved_at});
  const int writers = is_single ? 1 : static_cast<int>(own.members.size());
  const int of_writers = own.place_of(ranks.rank());
  const int64_t epoch = epoch_of(tracked, contents);
  auto staged = std::make_shared<Staged>(snapshot::plan(contents, writers));
  staged->step = step;
  staged->epoch = epoch;
  const uint64_t bytes = snapshot::bytes_of(*staged, of_writers);
  const auto room = memory.begin({.step = step,
                                  .round = own_environment().round,
                                  .rank = ranks.rank(),
                                  .world_size = ranks.world()},
                                 *staged, bytes);
  if (room) snapshot::copy(contents, of_writers, *room, *staged);
  const Status has_room = room ? Status() : room.error();
  if (!store) store = ranks.connect();
  saved_step = step;
  pause = seconds_since(start);
  const std::string prefix =
      "cpprun/snapshot/" + std::to_string(instance) + "/" + std::to_string(saves++) + "/";
  saver.start([this, staged, has_room, prefix](const std::atomic<bool>& gives_up) {
    const auto began = steady_clock::now();
    auto channel = std::make_unique<snapshot::StoreChannel>(store, prefix, gives_up);
    const Status status = has_room ? write(*staged, *channel) : fail(has_room, *channel);
    if (last_channel) last_channel->delete_keys();
    last_channel = std::move(channel);
    writing = seconds_since(began);
    report(staged->step, status);
    return status;
  });
  return true;
}

// Returns once every rank has its state in memory, or the reason of the first rank that has not.
Status Snapshot::Impl::agree_staged(const Status& own, snapshot::StoreChannel& channel) {
  const Status said = channel.set("staged/" + std::to_string(ranks.rank()), snapshot::encode(own));
  if (ranks.is_first()) {
    Status failed;
    for (int rank = 0; rank < ranks.world(); ++rank) {
      const auto heard =
          snapshot::decode_outcome(channel.get("staged/" + std::to_string(rank)), rank);
      if (!heard && failed) failed = heard.error();
    }
    const Status reported_all = channel.set("all_staged", snapshot::encode(failed));
    if (!reported_all) return reported_all;
  }
  const auto all = snapshot::decode_outcome(channel.get("all_staged"), 0);
  return all ? said : all.error();
}

Status Snapshot::Impl::fail(const Status& why, snapshot::StoreChannel& channel) {
  static_cast<void>(agree_staged(why, channel));
  return why;
}

Status Snapshot::Impl::write(Staged& staged, snapshot::StoreChannel& channel) {
  memory.write_index(staged);
  const Status agreed = agree_staged({}, channel);
  if (!agreed) return agreed;
  memory.complete(staged.step);
  const snapshot::WriteContext context = write_context();
  const auto path = is_single ? write_single_file(staged, context, channel)
                              : write_folder(staged, context, channel);
  if (!path) return path.error();
  last_path = *path;
  // One rank per node reports, so that every agent knows the snapshot.
  if (!is_single && ranks.rank() == neighbours.first_rank) {
    worker::report_snapshot(staged.step, *path);
  }
  return {};
}

snapshot::WriteContext Snapshot::Impl::write_context() {
  const worker::Environment& own = own_environment();
  return {.files = &real_files(),
          .place = place,
          .group = *known_group,
          .rank = ranks.rank(),
          .world = ranks.world(),
          .keep = {static_cast<size_t>(options.keep), options.keep_every},
          .run_id = own.run_id,
          .torch = TORCH_VERSION,
          .cpprun = CPPRUN_VERSION,
          .round = own.round,
          .request_commit = [](int64_t step) -> Status {
            const worker::CommitPermission leave = worker::request_commit(step);
            if (leave) return {};
            return Error{ErrorKind::Refused, leave.why};
          }};
}

// Reports only changes of the outcome: a full disk fails every save for a long time.
void Snapshot::Impl::report(int64_t step, const Status& outcome) {
  const std::string why = outcome ? "" : lasting(outcome.error().text);
  if (std::exchange(told, why) == why || !ranks.is_first()) return;
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

// Clocks differ between ranks, steps do not: rank 0 reads its clock at steps that all ranks know.
bool Snapshot::Impl::is_due(int64_t step, const SaveWhen& when) {
  const bool by_steps =
      when.every_steps > 0 && step > 0 && step % when.every_steps == 0 && step != saved_step;
  double interval = duration<double>(when.every).count();
  if (when.auto_interval) {
    const int64_t failures = own_environment().restart_count;
    const double best =
        snapshot::best_interval(pause, snapshot::time_between_failures(seconds(), failures));
    const double automatic = std::max(best, 2 * writing);
    interval = interval > 0 ? std::min(interval, automatic) : automatic;
  }
  const bool has_interval = when.auto_interval || interval > 0;
  if (by_steps || !has_interval || !look_out.is_due(step)) return by_steps;
  const bool is_time = seconds() - saved_at >= interval;
  const auto agreed =
      ranks.from_first({is_time ? 1 : 0, look_out.next_look(step, seconds(), interval)});
  look_out.set_next_look(agreed[1]);
  return agreed[0] != 0 && step != saved_step;
}

}  // namespace cpprun

#include "cpprun/snapshot/snapshot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/text.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/optim/grad_scaler.hpp"
#include "cpprun/snapshot/drift_check.hpp"
#include "cpprun/snapshot/folder_group.hpp"
#include "cpprun/snapshot/save/in_memory_snapshot.hpp"
#include "cpprun/snapshot/save_schedule.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/snapshot_loader.hpp"
#include "cpprun/snapshot/snapshot_writer.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "cpprun/snapshot/state/tracked.hpp"
#include "cpprun/snapshot/tracked_objects.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/internal/saving_time.hpp"

namespace cpprun {
namespace {

using pickle::Value;
using snapshot::Capture;
using snapshot::Storages;
using snapshot::Tracked;

// Files keep int as int64_t: Python has one integer type.
template <class T>
Tracked track_number(T& value, TrackValue options) {
  using Kept = std::conditional_t<std::is_same_v<T, int>, int64_t, T>;
  return {.is_per_rank = options.is_per_rank,
          .object = &value,
          .save = [&value](Capture&) { return Value(static_cast<Kept>(value)); },
          .load =
              [&value](const Value& held, const Storages& storages) {
                const auto* whole = held.get_if<int64_t>();  // a double cannot hold every int64_t
                value = whole != nullptr ? static_cast<T>(*whole)
                                         : static_cast<T>(number_of(held, storages));
              }};
}

// A text, which may be kept as bytes.
const std::string& text_of(const Value& value) {
  const auto* bytes = value.get_if<pickle::Bytes>();
  return bytes != nullptr ? bytes->bytes : snapshot::as<std::string>(value, "a text");
}

// Other text may be invalid UTF-8, which Python refuses in a str; it is kept as bytes.
bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
}

int cuda_device() {
  if (!dist::is_initialized()) return -1;
  const c10::Device device = dist::local_device();
  return device.is_cuda() ? device.index() : -1;
}

// Throws std::invalid_argument if the options name both a folder and a file.
snapshot::SnapshotLocation locate(const SnapshotOptions& options) {
  if (!options.file.empty() && !options.dir.empty()) {
    throw std::invalid_argument("a Snapshot has either a folder (.dir) or a file (.file)");
  }
  const std::string& launchers = worker::environment_or_default().snapshot_dir;
  if (!options.file.empty() && launchers.empty()) return {options.file, true};
  if (!options.dir.empty()) return {options.dir, false};
  return {launchers.empty() ? "snapshots" : launchers, false};
}

// Names the Snapshot among those of the job, also where another node's working folder differs.
std::string owner_of(const SnapshotOptions& options) {
  return locate(options).path + '\n' + options.file;
}

// The same place after a chdir().
snapshot::SnapshotLocation absolute(snapshot::SnapshotLocation location) {
  location.path = std::filesystem::absolute(location.path);
  return location;
}

// The number of the Snapshot of this process that has saved at `path` last. One thread, which calls
// collectives.
uint64_t& last_saver_at(const std::filesystem::path& path) {
  static std::map<std::filesystem::path, uint64_t> savers;
  return savers[path.lexically_normal()];
}

// Names the states of single ranks that begin anew or are dropped because the world has grown or
// shrunk.
void report_other_world(const std::string& snapshot, const std::vector<Tracked>& tracked, int saved,
                        int world) {
  const bool has_grown = saved < world;
  std::vector<std::string> names;
  for (const Tracked& each : tracked) {
    const bool is_lost = has_grown || each.kind != snapshot::Kind::Random;
    if (each.is_per_rank && !each.is_optional && is_lost) names.push_back("'" + each.name + "'");
  }
  if (names.empty() || saved == world || saved == 0) return;
  const int first = std::min(saved, world), last = std::max(saved, world) - 1;
  const std::string ranks = first == last
                                ? "rank " + std::to_string(first)
                                : "ranks " + std::to_string(first) + " to " + std::to_string(last);
  const std::string list = text::join(names, ", ");
  std::fprintf(stderr,
               has_grown
                   ? "cpprun: %s was saved by another number of ranks than %d, by %d: it has "
                     "nothing of %s, so their own %s begin anew; random numbers are derived "
                     "from the step\n"
                   : "cpprun: %s was saved by another number of ranks than %d, by %d: no rank "
                     "takes over what %s had of their own: %s\n",
               snapshot.c_str(), world, saved, ranks.c_str(), list.c_str());
}

}  // namespace

namespace detail {

StateDict whole_numbers(const std::map<std::string, double>& numbers) {
  StateDict state;
  for (const auto& [name, value] : numbers) {
    constexpr double kExact = 9007199254740992;  // above it not every integer is a double
    const bool is_whole = std::trunc(value) == value && std::abs(value) < kExact;
    state[name] = is_whole ? StateValue(static_cast<int64_t>(value)) : StateValue(value);
  }
  return state;
}

std::map<std::string, double> real_numbers(const StateDict& state) {
  std::map<std::string, double> numbers;
  for (const auto& [name, value] : state) {
    if (const auto* whole = std::get_if<int64_t>(&value)) {
      numbers[name] = static_cast<double>(*whole);
    } else if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      if (tensor->numel() == 1) numbers[name] = tensor->item<double>();
    } else if (const auto* real = std::get_if<double>(&value)) {
      numbers[name] = *real;
    }
  }
  return numbers;
}

}  // namespace detail

const char* name(SnapshotSource source) {
  switch (source) {
    case SnapshotSource::InMemorySnapshot: return "memory";
    case SnapshotSource::Disk: return "disk";
    case SnapshotSource::None: break;
  }
  return "none";
}

struct Snapshot::Impl {
  explicit Impl(SnapshotOptions given);
  snapshot::SavePlace start_save(int64_t step, bool to_disk);
  void check_location() const;
  void claim_location();
  bool is_refused(int64_t step);
  bool save_due(int64_t step, const SaveWhen& when);
  Resumed resume(const ResumeOptions& how);
  Resumed apply(const snapshot::LoadedSnapshot& loaded);

  const SnapshotOptions options;
  const snapshot::SnapshotLocation location;
  const snapshot::SnapshotComm comm = snapshot::SnapshotComm::here();
  snapshot::TrackedObjects objects;
  snapshot::FolderGroup group{location, comm};
  snapshot::InMemorySnapshot memory;
  snapshot::SaveSchedule schedule;
  bool has_hinted = false, has_reported_non_finite = false;
  uint64_t number = 0;  // among the Snapshots of this process; 0: it has not saved yet
  snapshot::DriftCheck drift;
  snapshot::SnapshotWriter writer;  // the last member: its threads use `memory` and end first
};

Snapshot::Impl::Impl(SnapshotOptions given)
    : options(std::move(given)),
      location(absolute(locate(options))),
      memory(owner_of(options), options.in_memory),
      schedule(comm, owner_of(options)),
      drift(comm, group, options.hints),
      writer(location, comm, group, memory,
             {static_cast<size_t>(options.keep), options.keep_every}) {
  if (options.keep < 1 || options.keep_every < 0) {
    throw std::invalid_argument("a Snapshot keeps at least one, and keep_every is not negative");
  }
}

snapshot::SavePlace Snapshot::Impl::start_save(int64_t step, bool to_disk) {
  if (step < 0) throw std::invalid_argument("a snapshot's step is negative");
  check_location();
  const snapshot::SavePlace place = writer.place_for(step, to_disk);
  if (place == snapshot::SavePlace::None || is_refused(step)) return snapshot::SavePlace::None;
  claim_location();
  if (!std::exchange(has_hinted, true) && options.hints && comm.is_first()) {
    snapshot::warn_about_untracked(objects);
  }
  const bool is_leaders = drift.differs(objects.parameters(), step);
  const bool goes_to_disk = place == snapshot::SavePlace::Disk;
  writer.start(objects.all(), step, schedule.begin_save(step, goes_to_disk), is_leaders,
               goes_to_disk);
  return place;
}

// A Snapshot may take over the place of one that is no longer used, as after an in-process restart;
// two that are both used would replace each other's snapshots.
void Snapshot::Impl::check_location() const {
  if (number == 0 || last_saver_at(location.path) == number) return;
  throw std::invalid_argument(
      "another Snapshot of this program saves into " + location.path +
      " too, and each replaces the other's snapshots: track all objects with one Snapshot, or "
      "give each a " +
      (location.is_single_file ? ".file" : ".dir") + " of its own");
}

void Snapshot::Impl::claim_location() {
  static uint64_t last_number = 0;
  if (number == 0) number = ++last_number;
  last_saver_at(location.path) = number;
}

// Collective, with refuse_non_finite: whether some rank has a NaN or an infinity. Rank 0 prints
// that, once.
bool Snapshot::Impl::is_refused(int64_t step) {
  if (!options.refuse_non_finite) return false;
  const std::vector<std::string> of_ranks = comm.gather(objects.first_not_finite());
  const auto found = std::ranges::find_if_not(of_ranks, &std::string::empty);
  if (found == of_ranks.end()) return false;
  if (!std::exchange(has_reported_non_finite, true) && comm.is_first()) {
    std::fprintf(stderr,
                 "cpprun: the snapshot of step %lld is left out: '%s' has a NaN or an infinity; "
                 "this message appears once\n",
                 static_cast<long long>(step), found->c_str());
  }
  return true;
}

bool Snapshot::Impl::save_due(int64_t step, const SaveWhen& when) {
  const worker::SavingTime waits;
  return start_save(step, schedule.is_for_disk(step, when)) != snapshot::SavePlace::None;
}

Resumed Snapshot::Impl::resume(const ResumeOptions& how) {
  writer.wait();
  // Destroyed after apply(): it holds files that rank 0 has sent.
  snapshot::SnapshotLoader loader(location, comm, group, memory, options.in_memory,
                                  how.before_step);
  const auto loaded = loader.load();
  if (loaded) return apply(*loaded);
  schedule.begin();
  return {};
}

Resumed Snapshot::Impl::apply(const snapshot::LoadedSnapshot& loaded) {
  const auto& [candidate, path, files, saved_ranks] = loaded;
  const std::vector<Tracked>& tracked = objects.all();
  const snapshot::Applied applied =
      snapshot::apply(tracked, location.is_single_file, comm.rank(), files);
  schedule.resume(candidate.step, applied.counters.seconds);
  if (comm.is_first() && !applied.missing.empty()) {
    const std::string names = text::join(applied.missing, ", ");
    std::fprintf(stderr, "cpprun: %s has nothing of: %s; it begins as it is\n",
                 candidate.name.c_str(), names.c_str());
  }
  if (comm.is_first() && applied.is_marked) {
    report_other_world(candidate.name, tracked, saved_ranks, comm.world());
  }
  const bool is_memory = candidate.where == snapshot::Candidate::Where::InMemorySnapshot;
  return {is_memory ? SnapshotSource::InMemorySnapshot : SnapshotSource::Disk, candidate.step,
          path};
}

Snapshot::Snapshot(SnapshotOptions options) : impl_(new Impl(std::move(options))) {}

// If a save waits for a file system that does not answer, its thread uses all of this.
Snapshot::~Snapshot() {
  if (!impl_->writer.end()) static_cast<void>(impl_.release());
}

Snapshot& Snapshot::add(const std::string& name, Tracked tracked) {
  impl_->objects.add(name, std::move(tracked));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, torch::nn::Module& model, TrackModule options) {
  return add(name, snapshot::track_module(model, options.strict));
}

Snapshot& Snapshot::track(const std::string& name, torch::optim::Optimizer& optimizer,
                          const torch::nn::Module& model) {
  return add(name, snapshot::track_optimizer(optimizer, snapshot::named_parameters(model)));
}

Snapshot& Snapshot::track(const std::string& name, torch::optim::Optimizer& optimizer) {
  return add(name, snapshot::track_optimizer(optimizer, impl_->objects.parameters()));
}

Snapshot& Snapshot::track(const std::string& name, optim::LRScheduler& scheduler) {
  return add(name, snapshot::track_scheduler(scheduler));
}

Snapshot& Snapshot::track(const std::string& name, data::DistributedSampler& sampler) {
  return add(name, snapshot::track_sampler(sampler));
}

Snapshot& Snapshot::track(const std::string& name, optim::GradScaler& scaler) {
  return add(name, snapshot::track_state_dict(
                       snapshot::Kind::Scaler, &scaler,
                       [&scaler] { return detail::whole_numbers(scaler.state_dict()); },
                       [&scaler](const StateDict& saved) {
                         scaler.load_state_dict(detail::real_numbers(saved));
                       }));
}

Snapshot& Snapshot::track_stateful(const std::string& name, Role role, const void* object,
                                   std::function<StateDict()> save,
                                   std::function<void(const StateDict&)> load, TrackValue options) {
  const auto kind = role == Role::Sampler ? snapshot::Kind::Sampler : snapshot::Kind::Value;
  Tracked tracked = snapshot::track_state_dict(kind, object, std::move(save), std::move(load));
  tracked.is_per_rank = options.is_per_rank;
  return add(name, std::move(tracked));
}

Snapshot& Snapshot::track_rng() { return add("rng", snapshot::track_generators(cuda_device())); }

Snapshot& Snapshot::track(const std::string& name, bool& value, TrackValue options) {
  return add(name, track_number(value, options));
}

Snapshot& Snapshot::track(const std::string& name, int& value, TrackValue options) {
  return add(name, track_number(value, options));
}

Snapshot& Snapshot::track(const std::string& name, int64_t& value, TrackValue options) {
  return add(name, track_number(value, options));
}

Snapshot& Snapshot::track(const std::string& name, double& value, TrackValue options) {
  return add(name, track_number(value, options));
}

Snapshot& Snapshot::track(const std::string& name, std::string& value, TrackValue options) {
  return add(name,
             {.is_per_rank = options.is_per_rank,
              .object = &value,
              .save = [&value](Capture&) { return pickle::text_or_bytes(value); },
              .load = [&value](const Value& held, const Storages&) { value = text_of(held); }});
}

Snapshot& Snapshot::track(const std::string& name, at::Tensor& value, TrackValue options) {
  return add(name, {.is_per_rank = options.is_per_rank,
                    .object = &value,
                    .save = [&value](Capture& capture) { return capture.add(value, true); },
                    .load =
                        [&value](const Value& held, const Storages& storages) {
                          const auto* ref = held.get_if<pickle::TensorRef>();
                          if (ref == nullptr) throw std::runtime_error("the file has no tensor");
                          snapshot::assign(value, *ref, storages);
                        }});
}

void Snapshot::track_buckets(const std::string& model, std::function<std::string()> save,
                             std::function<void(const std::string&)> load) {
  track_state(model + "_buckets", std::move(save), std::move(load));
  impl_->objects.make_last_optional();
}

void Snapshot::track_comm_hook(const std::string& model, std::function<StateDict()> save,
                               std::function<void(const StateDict&)> load,
                               std::function<StateDict()> save_own,
                               std::function<void(const StateDict&)> load_own) {
  // Known only at the save: a hook may be registered later.
  Tracked shared =
      snapshot::track_state_dict(snapshot::Kind::Value, nullptr, std::move(save), std::move(load));
  Tracked own = snapshot::track_state_dict(snapshot::Kind::CommHook, nullptr, std::move(save_own),
                                           std::move(load_own));
  own.is_per_rank = true;
  add(model + "_hook", std::move(shared));
  impl_->objects.make_last_optional();
  add(model + "_own_hook", std::move(own));
  impl_->objects.make_last_optional();
}

Snapshot& Snapshot::track_state(const std::string& name, std::function<std::string()> save,
                                std::function<void(const std::string&)> load, TrackValue options) {
  return add(name, {.is_per_rank = options.is_per_rank,
                    .save =
                        [save = std::move(save)](Capture&) {
                          std::string text = save();
                          return is_ascii(text) ? Value(std::move(text))
                                                : Value(pickle::Bytes{std::move(text)});
                        },
                    .load = [load = std::move(load)](const Value& held,
                                                     const Storages&) { load(text_of(held)); }});
}

Resumed Snapshot::resume(ResumeOptions options) { return impl_->resume(options); }

bool Snapshot::save_async(int64_t step) { return impl_->save_due(step, {}); }

bool Snapshot::save(int64_t step) {
  const worker::SavingTime waits;
  impl_->writer.wait();
  return impl_->start_save(step, true) == snapshot::SavePlace::Disk && impl_->writer.wait();
}

bool Snapshot::maybe_save(int64_t step, const SaveWhen& when) {
  worker::report_progress(step);
  return impl_->schedule.is_due(step, when, impl_->writer.cost()) && impl_->save_due(step, when);
}

bool Snapshot::wait() {
  const worker::SavingTime waits;
  return impl_->writer.wait();
}

std::string Snapshot::last_path() const {
  const worker::SavingTime waits;
  impl_->writer.wait();
  return impl_->writer.last_path();
}

}  // namespace cpprun

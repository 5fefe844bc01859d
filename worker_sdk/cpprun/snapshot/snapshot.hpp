// Snapshot: everything needed to continue a training run exactly, kept on disk and in memory.
//
//   cpprun::Snapshot snapshot({.dir = "snapshots", .keep = 3});
//   snapshot.track(model).track(optimizer, model).track(scheduler).track(sampler).track_rng();
//   snapshot.track("epochs_run", epochs_run);
//   const auto from = snapshot.resume();                 // at the start, on all ranks
//   ...
//   snapshot.maybe_save(step, {.every_steps = 100});     // in the loop, on all ranks
//
// Works under cpprun, under torchrun and alone. All ranks construct it after the process group,
// track the same things in the same order, and call resume and every save at the same place;
// destroy it before the group. What is tracked is kept by reference and must outlive it. One
// thread. Python opens the files with torch.load, and files of Python can be resumed from.
// docs/snapshots.md has the format and what is promised. Python counterpart: none.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}
namespace cpprun::data {
class DistributedSampler;
}
namespace cpprun::optim {
class LRScheduler;
}

namespace cpprun {

struct SnapshotOptions {
  // A folder that gets <dir>/step-<n>/ for each snapshot. Default: CPPRUN_SNAPSHOT_DIR, which
  // cpprun sets from --snapshot-dir, else "snapshots".
  std::string dir = {};
  // Instead of a folder: one file, replaced by each save; the one before stays as <file>.prev. Has
  // no effect under --snapshot-dir: the launcher knows folders only.
  std::string file = {};
  int keep = 3;            // the newest so many folders
  int64_t keep_every = 0;  // and those whose step is a multiple; 0: none
  bool in_memory = true;   // a worker that is started anew resumes from its node's memory
  bool hints = true;       // one line on stderr when something seems to be forgotten
};

// When maybe_save saves; what is zero does not count, the first that is due does.
struct SaveWhen {
  int64_t every_steps = 0;
  std::chrono::milliseconds every{0};
  // As often as costs least: the square root of 2 x (what a save costs) x (time between failures),
  // both measured (J. W. Young, 1974).
  bool auto_interval = false;
};

enum class SnapshotSource { None, InMemorySnapshot, Disk };

struct Resumed {
  SnapshotSource source = SnapshotSource::None;
  int64_t step = 0;
  std::string path;  // of the folder or file; empty unless from Disk
  explicit operator bool() const { return source != SnapshotSource::None; }
};
const char* name(SnapshotSource source);  // "memory", "disk", "none"

struct TrackModule {
  // As in Python's load_state_dict: names that only the file or only the module has are errors.
  bool strict = true;
};
struct TrackValue {
  bool is_per_rank = false;  // each rank's own; else rank 0's counts for all
};

namespace detail {
// DistributedDataParallel, or anything else with a module inside.
template <class T>
concept WrapsModule = requires(T& wrapped) {
  { wrapped.module() } -> std::convertible_to<torch::nn::Module&>;
};
// std::shared_ptr<Net>, Net of TORCH_MODULE.
template <class T>
concept HoldsModule = !WrapsModule<T> && requires(T & holder) {
  { *holder.get() } -> std::convertible_to<const torch::nn::Module&>;
};
template <class T>
concept ModuleLike = WrapsModule<T> || HoldsModule<T>;
template <class T>
torch::nn::Module& module_of(T& like) {
  if constexpr (WrapsModule<T>) {
    return like.module();
  } else {
    return const_cast<torch::nn::Module&>(static_cast<const torch::nn::Module&>(*like.get()));
  }
}
// nlohmann::json and its like.
template <class T>
concept JsonLike = requires(T& json, const std::string& text) {
  { json.dump() } -> std::convertible_to<std::string>;
  T::parse(text);
};
}  // namespace detail

class Snapshot {
 public:
  // Throws std::invalid_argument for options that exclude each other.
  explicit Snapshot(SnapshotOptions options = {});
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();  // waits for a save that is running

  // Each thing once, by a name of its own: std::invalid_argument for a name or an object that is
  // tracked already. The short forms call it "model", "optimizer", "scheduler", "sampler".
  Snapshot& track(const std::string& name, torch::nn::Module& model, TrackModule options = {});
  // With the model, parameters are known by name: then a layer may be added or removed between two
  // runs. Without it they are known by position.
  Snapshot& track(const std::string& name, torch::optim::Optimizer& optimizer,
                  const torch::nn::Module& model);
  Snapshot& track(const std::string& name, torch::optim::Optimizer& optimizer);
  Snapshot& track(const std::string& name, optim::LRScheduler& scheduler);
  Snapshot& track(const std::string& name, data::DistributedSampler& sampler);
  // The generators of this process: the CPU's, and that of this rank's GPU. Per rank.
  Snapshot& track_rng();
  Snapshot& track(const std::string& name, bool& value, TrackValue options = {});
  Snapshot& track(const std::string& name, int& value, TrackValue options = {});
  Snapshot& track(const std::string& name, int64_t& value, TrackValue options = {});
  Snapshot& track(const std::string& name, double& value, TrackValue options = {});
  Snapshot& track(const std::string& name, std::string& value, TrackValue options = {});
  Snapshot& track(const std::string& name, at::Tensor& value, TrackValue options = {});
  // Anything else, as text or bytes: a std::mt19937 by its stream operators.
  Snapshot& track_state(const std::string& name, std::function<std::string()> save,
                        std::function<void(const std::string&)> load, TrackValue options = {});
  template <detail::JsonLike Json>
  Snapshot& track(const std::string& name, Json& value, TrackValue options = {}) {
    return track_state(
        name, [&value] { return std::string(value.dump()); },
        [&value](const std::string& text) { value = Json::parse(text); }, options);
  }

  // Models in DistributedDataParallel, std::shared_ptr or a TORCH_MODULE.
  template <class Model>
  requires detail::ModuleLike<std::remove_cvref_t<Model>> Snapshot& track(
      const std::string& name, Model&& model, TrackModule options = {}) {
    track(name, detail::module_of(model), options);
    if constexpr (requires { model.core().buckets(); }) {
      track_buckets(
          name, [&model] { return model.core().buckets(); },
          [&model](const std::string& text) { model.core().set_buckets(text); });
    }
    return *this;
  }
  template <class Model>
  requires detail::ModuleLike<std::remove_cvref_t<Model>> Snapshot& track(
      const std::string& name, torch::optim::Optimizer& optimizer, Model&& model) {
    return track(name, optimizer, detail::module_of(model));
  }
  template <class First, class... Rest>
  requires(!std::convertible_to<First, std::string>) Snapshot& track(First&& first,
                                                                     Rest&&... rest) {
    return track(default_name(first), first, std::forward<Rest>(rest)...);
  }

  // Loads the newest snapshot that all ranks can load and that verifies: from memory if that is as
  // new as what is on disk, else CPPRUN_RESUME_FROM (the launcher's choice), else the newest of the
  // folder. One that is damaged is left out, which rank 0 says on stderr. Nothing there: None.
  // Throws std::runtime_error when the snapshot is of something else than what is tracked.
  Resumed resume();

  // Saves the state after `step` optimizer steps, and waits until it is on the disk. False: it is
  // not, and training may go on; rank 0 has said why on stderr.
  bool save(int64_t step);
  // Copies the state into memory and returns; a thread writes it. False: the last one is still
  // being written, and this one is left out.
  bool save_async(int64_t step);
  // save_async, if it is time. Times are those of rank 0.
  bool maybe_save(int64_t step, const SaveWhen& when);
  // Until no save is running. Whether the last one is on the disk.
  bool wait();
  // Of the last snapshot that is on the disk: its folder, or the file. Empty: none of this run.
  std::string last_path() const;

 private:
  // In which order DistributedDataParallel adds up; a snapshot may have none.
  void track_buckets(const std::string& model, std::function<std::string()> save,
                     std::function<void(const std::string&)> load);
  static std::string default_name(const torch::nn::Module&) { return "model"; }
  static std::string default_name(const torch::optim::Optimizer&) { return "optimizer"; }
  static std::string default_name(const optim::LRScheduler&) { return "scheduler"; }
  static std::string default_name(const data::DistributedSampler&) { return "sampler"; }
  template <detail::ModuleLike Model>
  static std::string default_name(const Model&) {
    return "model";
  }

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun

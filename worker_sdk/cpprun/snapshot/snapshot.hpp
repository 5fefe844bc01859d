/// @file
/// Snapshot: everything needed to continue a training run exactly, kept on disk and in memory.
///
///     cpprun::Snapshot snapshot({.dir = "snapshots", .keep = 3});
///     snapshot.track(model).track(optimizer, model).track(scheduler).track(sampler).track_rng();
///     snapshot.track("epochs_run", epochs_run);
///     const auto from = snapshot.resume();                 // at the start, on all ranks
///     ...
///     snapshot.maybe_save(step, {.every_steps = 100});     // in the loop, on all ranks
///
/// Works under cpprun, under torchrun and in a single process. All ranks construct the Snapshot
/// after init_process_group() and destroy it before the group; they track the same objects in the
/// same order and call resume() and every save at the same point of the program. A Snapshot holds
/// references: tracked objects must outlive it. Call it from one thread; two threads of its own
/// complete the saves in memory and write the files. Write failures do not throw (see save()).
///
/// Do not save inside DistributedDataParallel::no_sync: accumulated gradients are not part of a
/// snapshot. Python reads the files with torch.load, and resume() reads files that Python wrote.
/// docs/reference/snapshots.md describes the format and the guarantees. Python counterpart:
/// cpprun_worker.Snapshot.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/stateful.hpp"
#include "cpprun/optim/grad_scaler.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class LRScheduler;
class Optimizer;
class ReduceLROnPlateauScheduler;
}  // namespace torch::optim
namespace cpprun::data {
class DistributedSampler;
}
namespace cpprun::optim {
class LRScheduler;
}  // namespace cpprun::optim
namespace cpprun::snapshot {
struct Tracked;
}

namespace cpprun {

/// Where a Snapshot keeps its files, how many, and what it refuses.
struct SnapshotOptions {
  /// Each snapshot is a folder `DIR/step-N/`. Default: CPPRUN_SNAPSHOT_DIR, which cpprun sets from
  /// `--snapshot-dir`, else "snapshots". A relative path is one of the working folder in which the
  /// Snapshot is made. Two Snapshots in one program need two folders.
  std::string dir = {};
  /// Instead of folders, one file: each save replaces it and keeps the previous one as `FILE.prev`.
  /// Ignored under --snapshot-dir, because the launcher can choose among folders only: there a
  /// second Snapshot needs a `dir`.
  std::string file = {};
  int keep = 3;            ///< number of newest folders to keep
  int64_t keep_every = 0;  ///< also keep folders whose step is a multiple of this; 0: none
  bool in_memory = true;   ///< restarted workers may resume from a copy in their node's memory
  bool hints = true;       ///< warn on stderr about probable mistakes
  /// Leave out a state of which a module or an optimizer has a NaN or an infinity on some rank:
  /// save() and its companions return false, and rank 0 prints the name of the tensor, once. The
  /// check reads all of them once more while the training waits. Python: refuse_nan.
  bool refuse_non_finite = false;
};

/// When maybe_save() saves: as soon as one of the conditions holds. Zero disables a condition; a
/// negative member is a std::invalid_argument.
///
/// With `disk_every_steps` or `disk_every`, only some of these saves are written to disk: the first
/// one of this process, each that comes so much later than the last one on disk, and the next one
/// after a write that has failed or after resume() has gone back behind the last one on disk. The
/// others are for workers that restart on this node. Where memory does not serve them (no agent of
/// cpprun, `in_memory` false, nodes with different numbers of ranks), they are left out. Without
/// one of `every_steps`, `every` and `auto_interval` there are no saves to choose from:
/// std::invalid_argument.
struct SaveWhen {
  /// Save when `step` is a multiple of this; a program that does not call maybe_save() at each step
  /// saves at the first call from then on.
  int64_t every_steps = 0;
  /// Save when this time has passed since the last save.
  std::chrono::milliseconds every{0};
  /// The interval that loses the least time: sqrt(2 x cost of a save x time between rollbacks),
  /// both measured in this job (J. W. Young, 1974). A failure after which the survivors keep their
  /// state (elastic) is no rollback.
  bool auto_interval = false;
  /// Write to disk what comes at least so many steps after the last save on disk.
  int64_t disk_every_steps = 0;
  /// Write to disk what comes at least this time after the last save on disk. Zero both: each save
  /// is written to disk.
  std::chrono::milliseconds disk_every{0};
};

/// Where resume() has found the state. None: nowhere, so training starts anew.
enum class SnapshotSource { None, InMemorySnapshot, Disk };

/// The result of Snapshot::resume().
struct Resumed {
  SnapshotSource source = SnapshotSource::None;  ///< where the state comes from
  int64_t step = 0;  ///< optimizer steps that the state has seen; 0 if there is none
  std::string path;  ///< folder or file, absolute; empty unless source is Disk
  /// True if there was a snapshot.
  explicit operator bool() const { return source != SnapshotSource::None; }
};
/// "memory", "disk" or "none".
const char* name(SnapshotSource source);

/// Options of Snapshot::resume().
struct ResumeOptions {
  /// Ignores snapshots of this and later steps, wherever they are: the way back from a state that
  /// is spoilt. The next save sets the later ones on disk aside. A restarted program that passes
  /// the same value ignores its own later snapshots too, so pass it in one start only.
  int64_t before_step = std::numeric_limits<int64_t>::max();
};

/// Options of Snapshot::track() for a module.
struct TrackModule {
  /// As in Python's load_state_dict: a name that only the file or only the module has is an error,
  /// and so is a snapshot that lacks the module. False: what the file lacks stays as it is.
  bool strict = true;
};
/// Options of Snapshot::track() for a value.
struct TrackValue {
  bool is_per_rank = false;  ///< false: all ranks resume with rank 0's value
};

namespace detail {
// DistributedDataParallel, or another class with module().
template <class T>
concept WrapsModule = requires(T& wrapped) {
  { wrapped.module() } -> std::convertible_to<torch::nn::Module&>;
};
// std::shared_ptr<Net>, or a holder that TORCH_MODULE made.
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
// Python has one type for both: 3.0 becomes 3, as Python keeps counts.
StateDict whole_numbers(const std::map<std::string, double>& numbers);
std::map<std::string, double> real_numbers(const StateDict& state);
// nlohmann::json, or a class with the same dump() and parse().
template <class T>
concept JsonLike = requires(T& json, const std::string& text) {
  { json.dump() } -> std::convertible_to<std::string>;
  T::parse(text);
};
// As data::SamplerState.
template <class T>
concept SamplerStateLike = requires(T state) {
  state.seed = 0;
  state.epoch = 0;
  state.consumed = 0;
  state.size = 0;
  state.shuffle = true;
};
template <class T>
concept StateLike = std::same_as<T, StateDict> || std::same_as<T, std::map<std::string, double>> ||
    std::integral<T> || std::same_as<T, std::string> || SamplerStateLike<T> || JsonLike<T>;

// A state of any of these types as a StateDict, and back. from_state_dict throws std::out_of_range
// or std::bad_variant_access for the state of another class.
template <StateLike State>
StateDict to_state_dict(const State& state) {
  if constexpr (std::same_as<State, StateDict>) {
    return state;
  } else if constexpr (std::same_as<State, std::map<std::string, double>>) {
    return whole_numbers(state);
  } else if constexpr (std::integral<State>) {
    return {{"state", static_cast<int64_t>(state)}};
  } else if constexpr (std::same_as<State, std::string>) {
    return {{"state", state}};
  } else if constexpr (SamplerStateLike<State>) {
    return {{"seed", static_cast<int64_t>(state.seed)},
            {"epoch", static_cast<int64_t>(state.epoch)},
            {"consumed", static_cast<int64_t>(state.consumed)},
            {"size", static_cast<int64_t>(state.size)},
            {"shuffle", static_cast<int64_t>(state.shuffle)}};
  } else {
    return {{"state", std::string(state.dump())}};
  }
}
template <StateLike State>
State from_state_dict(const StateDict& saved) {
  const auto whole = [&](const char* name) { return std::get<int64_t>(saved.at(name)); };
  if constexpr (std::same_as<State, StateDict>) {
    return saved;
  } else if constexpr (std::same_as<State, std::map<std::string, double>>) {
    return real_numbers(saved);
  } else if constexpr (std::integral<State>) {
    return static_cast<State>(whole("state"));
  } else if constexpr (std::same_as<State, std::string>) {
    return std::get<std::string>(saved.at("state"));
  } else if constexpr (SamplerStateLike<State>) {
    State state;
    state.seed = static_cast<decltype(state.seed)>(whole("seed"));
    state.epoch = static_cast<decltype(state.epoch)>(whole("epoch"));
    state.consumed = static_cast<decltype(state.consumed)>(whole("consumed"));
    state.size = static_cast<decltype(state.size)>(whole("size"));
    state.shuffle = whole("shuffle") != 0;
    return state;
  } else {
    return State::parse(std::get<std::string>(saved.at("state")));
  }
}

// The SDK's own classes have overloads of track().
template <class T>
concept HasOverload = ModuleLike<T> || std::derived_from<T, optim::LRScheduler> ||
    std::derived_from<T, data::DistributedSampler> || std::same_as<T, optim::GradScaler>;
template <class T>
concept Stateful = !HasOverload<T> && requires(T & object, const T& same) {
  requires StateLike<std::remove_cvref_t<decltype(same.state_dict())>>;
  object.load_state_dict(same.state_dict());
};
// A data::Sampler that can continue where it was.
template <class T>
concept StatefulSampler = !HasOverload<T> && requires(T & object, const T& same) {
  requires StateLike<std::remove_cvref_t<decltype(same.state())>>;
  object.load_state(same.state());
  object.next(size_t{});
};
}  // namespace detail

/// Everything that is needed to continue a training exactly, kept on disk and in memory. All ranks
/// make the same calls in the same order, from one thread each. The text of this file has an
/// example and the rules.
class Snapshot {
 public:
  /// Throws std::invalid_argument for contradictory options, std::logic_error when a launcher
  /// started several ranks and there is no process group yet.
  explicit Snapshot(SnapshotOptions options = {});
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();  ///< waits for the running saves, as wait() does

  /// A module by its parameters and buffers. A snapshot of a program that tracked one module only
  /// has no name of it: among several it is the one with the same tensors, or the one of these
  /// that is tracked as "model".
  ///
  /// Track each object once, under a name of its own; std::invalid_argument if the name or the
  /// object is tracked already. Overloads without a name use "model", "optimizer", "scheduler",
  /// "sampler" and "scaler".
  Snapshot& track(const std::string& name, torch::nn::Module& model, TrackModule options = {});
  /// An optimizer of the parameters of `model`. The file identifies them by name, so that layers
  /// may be added or removed between two runs; not with LBFGS, which has one state for all.
  Snapshot& track(const std::string& name, torch::optim::Optimizer& optimizer,
                  const torch::nn::Module& model);
  /// The same with the names of the modules that are tracked already. If it has parameters of other
  /// modules too, the file identifies all by position.
  Snapshot& track(const std::string& name, torch::optim::Optimizer& optimizer);
  /// A scheduler, by its state_dict() and the rates of its optimizer.
  Snapshot& track(const std::string& name, optim::LRScheduler& scheduler);
  /// @{
  /// LibTorch's schedulers do not give their state: use those of cpprun::optim::lr_scheduler.
  Snapshot& track(const std::string& name, torch::optim::LRScheduler& scheduler) = delete;
  Snapshot& track(const std::string& name, torch::optim::ReduceLROnPlateauScheduler&) = delete;
  /// @}
  /// A sampler, by its position; resume() continues within the epoch, also with another number of
  /// ranks.
  Snapshot& track(const std::string& name, data::DistributedSampler& sampler);
  /// A GradScaler, by Python's entries of its state.
  Snapshot& track(const std::string& name, optim::GradScaler& scaler);
  /// The random number generators of each rank: the CPU's, and that of the rank's GPU.
  Snapshot& track_rng();
  /// @{
  /// A value of the program. A rank that the saved world did not have keeps its value if
  /// `is_per_rank`.
  Snapshot& track(const std::string& name, bool& value, TrackValue options = {});
  Snapshot& track(const std::string& name, int& value, TrackValue options = {});
  Snapshot& track(const std::string& name, int64_t& value, TrackValue options = {});
  Snapshot& track(const std::string& name, double& value, TrackValue options = {});
  Snapshot& track(const std::string& name, std::string& value, TrackValue options = {});
  Snapshot& track(const std::string& name, at::Tensor& value, TrackValue options = {});
  /// @}
  /// Any other state, as text or bytes; for instance a std::mt19937 through its stream operators.
  Snapshot& track_state(const std::string& name, std::function<std::string()> save,
                        std::function<void(const std::string&)> load, TrackValue options = {});
  /// A nlohmann::json, or a value of another class with dump() and a static parse(), as text.
  template <detail::JsonLike Json>
  Snapshot& track(const std::string& name, Json& value, TrackValue options = {}) {
    return track_state(
        name, [&value] { return std::string(value.dump()); },
        [&value](const std::string& text) { value = Json::parse(text); }, options);
  }

  /// Any class with state_dict() and load_state_dict(), whose state is a StateDict, a
  /// std::map<std::string, double> or JSON.
  template <detail::Stateful Object>
  Snapshot& track(const std::string& name, Object& object, TrackValue options = {}) {
    using State = std::remove_cvref_t<decltype(object.state_dict())>;
    return track_stateful(
        name, Role::Value, &object,
        [&object] { return detail::to_state_dict<State>(std::as_const(object).state_dict()); },
        [&object](const StateDict& saved) {
          object.load_state_dict(detail::from_state_dict<State>(saved));
        },
        options);
  }
  /// A sampler of your own: a data::Sampler with load_state(), which takes what state() returns.
  template <detail::StatefulSampler Sampler>
  Snapshot& track(const std::string& name, Sampler& sampler, TrackValue options = {}) {
    using State = std::remove_cvref_t<decltype(std::as_const(sampler).state())>;
    return track_stateful(
        name, Role::Sampler, &sampler,
        [&sampler] { return detail::to_state_dict<State>(std::as_const(sampler).state()); },
        [&sampler](const StateDict& saved) {
          sampler.load_state(detail::from_state_dict<State>(saved));
        },
        options);
  }

  /// A model inside DistributedDataParallel, std::shared_ptr or a TORCH_MODULE holder.
  template <class Model>
  requires detail::ModuleLike<std::remove_cvref_t<Model>> Snapshot& track(
      const std::string& name, Model&& model, TrackModule options = {}) {
    track(name, detail::module_of(model), options);
    if constexpr (requires { model.core().buckets(); }) {
      track_buckets(
          name, [&model] { return model.core().buckets(); },
          [&model](const std::string& text) { model.core().set_buckets(text); });
    }
    if constexpr (requires { model.core().hook_state(); }) {
      track_comm_hook(
          name, [&model] { return model.core().hook_state(); },
          [&model](const StateDict& state) { model.core().load_hook_state(state); },
          [&model] { return model.core().own_hook_state(); },
          [&model](const StateDict& state) { model.core().load_own_hook_state(state); });
    }
    return *this;
  }
  /// An optimizer of a model inside DistributedDataParallel, std::shared_ptr or a TORCH_MODULE
  /// holder.
  template <class Model>
  requires detail::ModuleLike<std::remove_cvref_t<Model>> Snapshot& track(
      const std::string& name, torch::optim::Optimizer& optimizer, Model&& model) {
    return track(name, optimizer, detail::module_of(model));
  }
  /// track() under the default name of the object's kind: "model", "optimizer", "scheduler",
  /// "sampler" or "scaler".
  template <class First, class... Rest>
  requires(!std::convertible_to<First, std::string>) Snapshot& track(First&& first,
                                                                     Rest&&... rest) {
    return track(default_name(first), first, std::forward<Rest>(rest)...);
  }

  /// Loads the newest snapshot that all ranks can load and whose checksums are right: from memory
  /// if that copy is at least as new as the ones on disk, else CPPRUN_RESUME_FROM (the launcher's
  /// choice), else the newest in the folder. Skips damaged snapshots; rank 0 reports them on
  /// stderr. Returns None if there is no snapshot. Throws std::runtime_error when the snapshot does
  /// not match the tracked objects; these may be partly loaded then.
  Resumed resume(ResumeOptions options = {});

  /// Saves the state after `step` optimizer steps and waits until it is on disk. False: it is not
  /// on disk, rank 0 has reported the reason on stderr, and training may continue. Throws
  /// std::invalid_argument, as all saves do, for a negative step, and if another Snapshot has saved
  /// into the same folder or file since this one did.
  bool save(int64_t step);
  /// Copies the state into memory and returns; a thread writes it to disk, unless the last one is
  /// still being written: then it stays in memory, where that serves a restarted worker, and rank 0
  /// prints this once. False: it is left out, because memory does not serve, or the save before has
  /// not ended there, or it has a NaN that refuse_non_finite refuses.
  bool save_async(int64_t step);
  /// save_async() if a condition of `when` holds; rank 0's clock decides for all ranks. `when` may
  /// keep it in memory. Reports the step to the agent, as a heartbeat for which no next one is due,
  /// if the program sends none.
  bool maybe_save(int64_t step, const SaveWhen& when);
  /// Waits for the running saves. True if the last one is in memory, and the last one that was to
  /// go to disk is there. A file system that has not answered a call for 4 minutes is not waited
  /// for: false, and the rank prints its path, once.
  bool wait();
  /// Absolute path of the folder or file of the last snapshot that this process has written; empty
  /// if there is none.
  /// Waits for the running saves.
  std::string last_path() const;

 private:
  Snapshot& add(const std::string& name, snapshot::Tracked tracked);
  // The bucket layout of DistributedDataParallel, which fixes the order of its sums. Snapshots
  // without one (Python's) are accepted.
  void track_buckets(const std::string& model, std::function<std::string()> save,
                     std::function<void(const std::string&)> load);
  // The state of its communication hook, equal on all ranks and of each rank.
  void track_comm_hook(const std::string& model, std::function<StateDict()> save,
                       std::function<void(const StateDict&)> load,
                       std::function<StateDict()> save_own,
                       std::function<void(const StateDict&)> load_own);
  enum class Role { Value, Sampler };
  Snapshot& track_stateful(const std::string& name, Role role, const void* object,
                           std::function<StateDict()> save,
                           std::function<void(const StateDict&)> load, TrackValue options);
  static std::string default_name(const torch::nn::Module&) { return "model"; }
  static std::string default_name(const torch::optim::Optimizer&) { return "optimizer"; }
  static std::string default_name(const optim::LRScheduler&) { return "scheduler"; }
  static std::string default_name(const torch::optim::LRScheduler&) { return "scheduler"; }
  static std::string default_name(const torch::optim::ReduceLROnPlateauScheduler&) {
    return "scheduler";
  }
  static std::string default_name(const data::DistributedSampler&) { return "sampler"; }
  static std::string default_name(const optim::GradScaler&) { return "scaler"; }
  template <detail::StatefulSampler Sampler>
  static std::string default_name(const Sampler&) {
    return "sampler";
  }
  template <detail::ModuleLike Model>
  static std::string default_name(const Model&) {
    return "model";
  }

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun

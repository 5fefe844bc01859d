/// @file
/// Process groups: initialisation, subgroups, rank and size. Python counterpart: torch.distributed.
///
///     auto group = cpprun::dist::init_process_group({.backend = "gloo"});
///     ... cpprun::dist::get_rank() ...
///     cpprun::dist::destroy_process_group();   // or let the guard do it
///
/// One default group per process. Threads: init, destroy and new_group from one thread at a time,
/// everything else from any. Errors: errors.hpp.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "cpprun/dist/errors.hpp"
#include "cpprun/dist/store.hpp"

namespace cpprun::dist {

/// The default timeout of gloo, as torch's: 30 minutes.
inline constexpr std::chrono::milliseconds kGlooTimeout{1'800'000};
/// The default timeout of nccl, as torch's: 10 minutes.
inline constexpr std::chrono::milliseconds kNcclTimeout{600'000};

/// Options of one backend; Python: `pg_options`.
struct BackendOptions {
  /// Network interface; default: GLOO_SOCKET_IFNAME, else the interface that routes to MASTER_ADDR.
  std::string gloo_interface = {};
  bool is_high_priority_stream = false;  ///< nccl
};

/// The arguments of torch.distributed.init_process_group, with the same defaults.
struct InitOptions {
  /// "gloo", "nccl" or "cpu:gloo,cuda:nccl". "auto" or empty: "cpu:gloo,cuda:nccl" if this process
  /// has a GPU, else "gloo". nccl needs the plugin libcpprun_nccl.so: beside the program, in
  /// ../lib, or at CPPRUN_NCCL_PLUGIN.
  std::string backend = {};
  /// "env://" (default), "tcp://host:port?rank=0&world_size=2" or "file:///path". Not together with
  /// `store`. env:// uses the TCPStore at MASTER_ADDR:MASTER_PORT, so that C++ and Python ranks can
  /// form one world; "env://?store=agent" or CPPRUN_SDK_STORE=agent uses the store of cpprun's
  /// agent.
  std::string init_method = {};
  /// Of every collective, and of initialisation; default: kGlooTimeout or kNcclTimeout.
  std::optional<std::chrono::milliseconds> timeout = {};
  int world_size = -1;  ///< -1: from the URL, else the environment; an argument wins over both
  /// -1: from the URL, else the environment; an argument wins over both
  int rank = -1;
  Store store = {};  ///< requires rank and world_size
  /// The group's name in errors and in ProcessGroup::name(). Empty: a name that the SDK makes.
  std::string group_name = {};
  BackendOptions pg_options = {};             ///< options of the backend
  std::optional<c10::Device> device_id = {};  ///< the device of this rank's collectives
};

/// A group of ranks: a shared handle, cheap to copy. As an argument, an empty handle means the
/// default group.
class ProcessGroup {
 public:
  struct State;  ///< dist/group/group_state.hpp

  ProcessGroup() = default;
  /// For the SDK: a handle of `state`.
  explicit ProcessGroup(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// False for an empty handle.
  explicit operator bool() const { return state_ != nullptr; }

  int rank() const;  ///< this process's rank in the group; -1: it is not a member
  int size() const;  ///< number of ranks
  /// InitOptions::group_name, or the name that the SDK has made.
  const std::string& name() const;
  std::string backend() const;  ///< "gloo", "nccl" or "cpu:gloo,cuda:nccl"
  /// The longest time that a collective of this group may take.
  std::chrono::milliseconds timeout() const;
  const std::vector<int>& ranks() const;  ///< global ranks, by group rank
  Store store() const;                    ///< with the group's prefix

  /// For the SDK.
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Destroys the default group at the end of a scope. Waits at most 5 s for running collectives, 0.3
/// s while an exception unwinds the stack. Keep it: init_process_group(...); as a statement
/// destroys the group at once.
class ProcessGroupGuard {
 public:
  ProcessGroupGuard() = default;
  /// Destroys `group` at the end of the scope.
  explicit ProcessGroupGuard(ProcessGroup group) : group_(std::move(group)) {}
  /// @{
  /// Moves the duty to destroy the group.
  ProcessGroupGuard(ProcessGroupGuard&& other) noexcept = default;
  ProcessGroupGuard& operator=(ProcessGroupGuard&& other) noexcept {
    std::swap(group_, other.group_);
    return *this;
  }
  /// @}
  ~ProcessGroupGuard();

  /// The group that the guard destroys.
  const ProcessGroup& group() const { return group_; }
  /// The guard stands for its group as an argument.
  operator const ProcessGroup&() const { return group_; }  // NOLINT: it stands for its group

 private:
  ProcessGroup group_;  // empty: there is nothing to destroy
};

/// Initialises the default group; blocks until all ranks have joined. Throws DistTimeoutError after
/// the timeout, with the missing ranks if the store knows them. Without a launcher, arguments or
/// RANK and WORLD_SIZE it throws DistArgumentError; see init_process_group_or_single. From then on
/// SIGPIPE is ignored, as in Python, unless the program handles it.
[[nodiscard]] ProcessGroupGuard init_process_group(InitOptions options = {});
/// The same, but a program started by hand, without RANK and WORLD_SIZE, gets a group of one
/// process.
[[nodiscard]] ProcessGroupGuard init_process_group_or_single(InitOptions options = {});

/// Destroys the default group and with it all others. Without a default group it does nothing.
/// Waits at most 5 s for running collectives; over nccl it aborts them, and waits at most 60 s.
void destroy_process_group();
/// Destroys one group; the default group (or an empty handle) as above.
void destroy_process_group(const ProcessGroup& group);

bool is_initialized();            ///< whether there is a default group
bool is_torchelastic_launched();  ///< by cpprun or torchrun
ProcessGroup default_group();     ///< throws DistStateError if there is none
/// @{
/// Rank of this process in the group, and the number of its ranks. Rank -1: this process does not
/// belong to it. Throws DistStateError without a default group, or for a group that was destroyed.
int get_rank(const ProcessGroup& group = {});
int get_world_size(const ProcessGroup& group = {});
/// @}
/// "gloo", "nccl" or "cpu:gloo,cuda:nccl".
std::string get_backend(const ProcessGroup& group = {});
int get_local_rank();    ///< LOCAL_RANK; 0 without a launcher
bool is_main_process();  ///< global rank 0
/// Whether this process can make groups of nccl: it sees a GPU, and the plugin is there. Loads the
/// plugin, and with it LibTorch's CUDA part: a program that is not linked to that part calls this
/// before it makes tensors on a GPU, if no group of nccl is made before.
bool is_nccl_available();
/// The default group's device_id; without one cuda:LOCAL_RANK if the group has nccl (cuda:0 where
/// this process sees one GPU only), else cpu.
c10::Device local_device();

/// Makes a group of the given global ranks (empty: all), sorted. All ranks of the default group
/// must call it with the same ranks; other ranks than those given get a group whose rank() is -1.
/// `options`: backend, timeout, group_name, pg_options and device_id; other fields are a
/// DistArgumentError.
ProcessGroup new_group(const std::vector<int>& ranks, InitOptions options = {});
/// Groups of consecutive ranks of the default group. `current`: the one that this rank is in.
struct Subgroups {
  ProcessGroup current;           ///< the group that this rank is in
  std::vector<ProcessGroup> all;  ///< all groups, in the same order on all ranks
};
/// Cuts the world into groups of `group_size` ranks, by default of the ranks of one node
/// (LOCAL_WORLD_SIZE). All ranks call it; options as in new_group. DistArgumentError: the world
/// size is not a multiple of group_size, or LOCAL_WORLD_SIZE is no number.
Subgroups new_subgroups(std::optional<int> group_size = {}, const InitOptions& options = {});
/// The same with lists of global ranks, each rank in at most one list. `current` is empty on a rank
/// that is in none.
Subgroups new_subgroups_by_enumeration(const std::vector<std::vector<int>>& ranks_per_subgroup_list,
                                       const InitOptions& options = {});
/// @{
/// Converts between global rank and rank in the group. DistArgumentError: no such rank.
int get_group_rank(const ProcessGroup& group, int global_rank);
int get_global_rank(const ProcessGroup& group, int group_rank);
/// @}

/// What a backend supports, for tables and early checks.
struct Capabilities {
  std::set<std::string> calls;                ///< names as in collectives.hpp
  std::set<std::string> reduce_ops;           ///< "SUM", ...; for all numbers
  std::set<std::string> integer_reduce_ops;   ///< for integers only
  std::set<std::string> emulated_reduce_ops;  ///< emulated by the SDK
  bool has_cpu = false;                       ///< tensors on the CPU
  bool has_cuda = false;                      ///< tensors on a GPU
};
/// `backend` as in InitOptions::backend. With two backends, what either of them supports.
/// DistArgumentError for a name that is none.
Capabilities capabilities(const std::string& backend);

}  // namespace cpprun::dist

// The process group: set up, named groups, rank and size. Step 1 and step 5 of every DDP program.
//
//   auto group = cpprun::dist::init_process_group({.backend = "gloo"});
//   ... cpprun::dist::get_rank() ...
//   cpprun::dist::destroy_process_group();   // or leave it to the guard
//
// One default group per process. init, destroy and new_group from one thread at a time; everything
// else from any. Python counterpart: torch.distributed.
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

inline constexpr std::chrono::milliseconds kGlooTimeout{1'800'000};  // torch's default: 30 minutes
inline constexpr std::chrono::milliseconds kNcclTimeout{600'000};

// Options of one backend; `pg_options` in Python.
struct BackendOptions {
  // Default: GLOO_SOCKET_IFNAME, else the address that reaches MASTER_ADDR.
  std::string gloo_interface = {};
  bool is_high_priority_stream = false;  // nccl
};

// The nine arguments of Python's init_process_group, with its defaults.
struct InitOptions {
  // "gloo", "nccl", "cpu:gloo,cuda:nccl"; "auto" or empty: the last one if this process has a GPU,
  // else gloo. nccl needs the plugin libcpprun_nccl.so: next to the program, in ../lib, or where
  // CPPRUN_NCCL_PLUGIN says.
  std::string backend = {};
  // "env://" (default), "tcp://host:port?rank=0&world_size=2", "file:///path". Not with `store`.
  // env:// meets at MASTER_ADDR:MASTER_PORT, so that C++ and Python ranks can form one world;
  // "env://?store=agent" or CPPRUN_SDK_STORE=agent at the store of cpprun's agent instead.
  std::string init_method = {};
  // Of every later collective; default: the backend's.
  std::optional<std::chrono::milliseconds> timeout = {};
  int world_size = -1;  // -1: from the URL or the environment; given, it wins over both
  int rank = -1;
  Store store = {};  // then rank and world_size must be given
  std::string group_name = {};
  BackendOptions pg_options = {};
  std::optional<c10::Device> device_id = {};  // binds the group to one device
};

// A group of ranks; a cheap copy of a shared handle. An empty one means the default group wherever
// a group is an argument.
class ProcessGroup {
 public:
  struct State;  // dist/group_state.hpp

  ProcessGroup() = default;
  explicit ProcessGroup(std::shared_ptr<State> state) : state_(std::move(state)) {}
  explicit operator bool() const { return state_ != nullptr; }

  int rank() const;  // within this group; -1: this process does not belong to it
  int size() const;
  const std::string& name() const;
  std::string backend() const;  // "gloo", "nccl" or "cpu:gloo,cuda:nccl"
  std::chrono::milliseconds timeout() const;
  const std::vector<int>& ranks() const;  // global ranks in the order of this group's
  Store store() const;                    // with this group's prefix

  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Destroys the default group at the end of a scope, in time limits, quietly when unwinding.
class ProcessGroupGuard {
 public:
  ProcessGroupGuard() = default;
  explicit ProcessGroupGuard(ProcessGroup group) : group_(std::move(group)), is_active_(true) {}
  ProcessGroupGuard(ProcessGroupGuard&& other) noexcept;
  ProcessGroupGuard& operator=(ProcessGroupGuard&& other) noexcept;
  ~ProcessGroupGuard();

  const ProcessGroup& group() const { return group_; }
  operator const ProcessGroup&() const { return group_; }  // NOLINT: it stands for its group

 private:
  ProcessGroup group_;
  bool is_active_ = false;
};

// Blocks until all ranks are there, or throws after the timeout, naming the missing ones where the
// store knows them. Alone (no RANK, no WORLD_SIZE, no arguments, not launched): world size 1 is not
// assumed; use `init_process_group_or_single` for programs that also run by hand.
[[nodiscard]] ProcessGroupGuard init_process_group(InitOptions options = {});
// As above; with no launcher's environment at all, a group of this process alone.
[[nodiscard]] ProcessGroupGuard init_process_group_or_single(InitOptions options = {});

// Of the default group and all others; a second call does nothing.
void destroy_process_group();
void destroy_process_group(const ProcessGroup& group);

bool is_initialized();
bool is_torchelastic_launched();  // by cpprun or torchrun; Python: is_torchelastic_launched
ProcessGroup default_group();     // throws DistStateError when there is none
int get_rank(const ProcessGroup& group = {});
int get_world_size(const ProcessGroup& group = {});
std::string get_backend(const ProcessGroup& group = {});
int get_local_rank();        // LOCAL_RANK, 0 when not launched
bool is_main_process();      // global rank 0
c10::Device local_device();  // cuda:LOCAL_RANK where the default group has a CUDA backend, else cpu

// All ranks of the default group must call it, with the same ranks. Ranks that do not belong get a
// group whose rank() is -1.
ProcessGroup new_group(const std::vector<int>& ranks, InitOptions options = {});
int get_group_rank(const ProcessGroup& group, int global_rank);
int get_global_rank(const ProcessGroup& group, int group_rank);

// What a backend has; for tables and for early errors.
struct Capabilities {
  std::set<std::string> calls;                // names as in collectives.hpp
  std::set<std::string> reduce_ops;           // "SUM" ...; on any number
  std::set<std::string> integer_reduce_ops;   // integers only
  std::set<std::string> emulated_reduce_ops;  // made of others by the SDK
  bool has_cpu = false;
  bool has_cuda = false;
};
Capabilities capabilities(const std::string& backend);

}  // namespace cpprun::dist

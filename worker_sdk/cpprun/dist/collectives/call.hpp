// One call into a group: its checks, its texts, its way into the backend. Private to dist.
//
//   Call call("broadcast", options.group);
//   call.check(tensor, "tensor");
//   ... call.start(async_op, [&] { return call.pg().broadcast(...); }, ending) ...
//
// Everything that can be refused is refused before anything is sent, so that a wrong argument
// leaves the group as it was.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/collectives/work_state.hpp"
#include "cpprun/dist/group/group_state.hpp"

namespace cpprun::dist {

// "float32 [2, 3]".
std::string describe(const at::Tensor& tensor);
std::string dtype_name(at::ScalarType type);  // "float32"

// How many elements this rank sends to each rank of the group, and takes from each.
struct Exchange {
  std::vector<int64_t> sends, takes;
};

class Call {
 public:
  // DistStateError: no such group, destroyed, broken, or this process is no member.
  Call(const char* name, const ProcessGroup& group);

  c10d::ProcessGroup& pg() const { return *pg_; }
  const std::shared_ptr<ProcessGroup::State>& group() const { return group_; }
  const char* name() const { return name_; }
  int rank() const { return group_->rank; }
  int size() const { return static_cast<int>(group_->ranks.size()); }
  std::chrono::milliseconds timeout() const { return group_->timeout; }
  // "all_reduce in group 0 (gloo, rank 1 of 2)".
  std::string where() const;

  // `what` names the value and the cure.
  [[noreturn]] void refuse(const std::string& what) const;       // DistArgumentError
  [[noreturn]] void unsupported(const std::string& what) const;  // DistUnsupportedError

  // The group's rank of a global one; refuses one that is not in the group.
  int group_rank(int global_rank, const char* argument) const;
  // Defined, dense, on a device that the group has a backend for.
  void check(const at::Tensor& tensor, const char* argument) const;
  // Besides `check`, for what the call writes to: each element has its own place in memory. Else
  // writing the result would fail, when all has been sent.
  void check_written(const at::Tensor& tensor, const char* argument) const;
  void check_written(const std::vector<at::Tensor>& list, const char* argument) const;
  // One per rank, all like `like` in dtype and device.
  void check_list(const std::vector<at::Tensor>& list, const char* argument,
                  const at::Tensor& like) const;
  void check_same_dtype(const at::Tensor& tensor, const char* argument,
                        const at::Tensor& like) const;
  void check_same_shape(const at::Tensor& tensor, const char* argument,
                        const at::Tensor& like) const;
  // "gloo" or "nccl": what serves this tensor's device.
  std::string backend_of(const at::Tensor& tensor) const;
  bool is_gloo(const at::Tensor& tensor) const { return backend_of(tensor) == "gloo"; }

  // With debug checks on: all ranks must bring the same text, or all throw. Collectives only.
  // With an exchange: and each must take what the other sends.
  void compare(const std::string& text, const Exchange& exchange = {}) const;

  // Starts it, counts it, and waits unless `async_op`. `finish` runs after a good end.
  using Native = c10::intrusive_ptr<c10d::Work>;
  Work start(bool async_op, const std::function<Native()>& begin,
             std::function<void()> finish = {}) const;
  // For sends and receives; the caller waits.
  Work start(Work::State::Kind kind, const std::function<Native()>& begin,
             std::function<void()> finish = {}) const;

 private:
  Native begun(const std::function<Native()>& begin) const;

  const char* name_;
  std::shared_ptr<ProcessGroup::State> group_;
  c10::intrusive_ptr<c10d::ProcessGroup> pg_;
};

}  // namespace cpprun::dist

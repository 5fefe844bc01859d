// One call on a group: checks its arguments, describes it in errors, starts it. Private to dist.
//
//   Call call("broadcast", options.group);
//   call.check(tensor, "tensor");
//   ... call.start(async_op, [&] { return call.pg().broadcast(...); }, finish) ...
//
// Check all arguments before anything is sent, so that a wrong argument leaves the group usable.
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

// Number of elements that this rank sends to, and receives from, each rank of the group.
struct Exchange {
  std::vector<int64_t> sends, takes;
};

class Call {
 public:
  // DistStateError: the group does not exist, is destroyed or broken, or this process is no member.
  Call(const char* name, const ProcessGroup& group);

  c10d::ProcessGroup& pg() const { return *pg_; }
  const std::shared_ptr<ProcessGroup::State>& group() const { return group_; }
  const char* name() const { return name_; }
  int rank() const { return group_->rank; }
  int size() const { return static_cast<int>(group_->ranks.size()); }
  std::chrono::milliseconds timeout() const { return group_->timeout; }
  // "all_reduce in group 0 (gloo, rank 1 of 2)".
  std::string where() const;

  // `what` names the value and the remedy.
  [[noreturn]] void refuse(const std::string& what) const;       // DistArgumentError
  [[noreturn]] void unsupported(const std::string& what) const;  // DistUnsupportedError

  // Converts a global rank to the rank in the group; refuses a rank that is not a member.
  int group_rank(int global_rank, const char* argument) const;
  // Refuses a tensor unless it is defined, dense, and on a device that the group has a backend for.
  void check(const at::Tensor& tensor, const char* argument) const;
  // As `check`, for tensors that the call writes: every element has its own memory. Otherwise
  // writing the result would fail after everything has been sent.
  void check_written(const at::Tensor& tensor, const char* argument) const;
  void check_written(const std::vector<at::Tensor>& list, const char* argument) const;
  // One tensor per rank, all with the dtype and device of `like`.
  void check_list(const std::vector<at::Tensor>& list, const char* argument,
                  const at::Tensor& like) const;
  void check_same_dtype(const at::Tensor& tensor, const char* argument,
                        const at::Tensor& like) const;
  void check_same_shape(const at::Tensor& tensor, const char* argument,
                        const at::Tensor& like) const;
  // "gloo" or "nccl": the backend for this tensor's device.
  std::string backend_of(const at::Tensor& tensor) const;
  bool is_gloo(const at::Tensor& tensor) const { return backend_of(tensor) == "gloo"; }

  // c10d's options of a call, with the group's timeout.
  template <class Options>
  Options options() const {
    Options native;
    native.timeout = timeout();
    return native;
  }

  // With debug checks on: throws on all ranks unless all pass the same text and every rank receives
  // what the others send to it. Collectives only.
  void compare(const std::string& text, const Exchange& exchange = {}) const;

  // Starts the work, counts it, and waits unless `async_op`. `finish` runs after success.
  using Native = c10::intrusive_ptr<c10d::Work>;
  Work start(bool async_op, const std::function<Native()>& begin,
             std::function<void()> finish = {}) const;
  // The same for reduce_scatter; `output` is one of the tensors that it writes.
  Work start_reduce_scatter(bool async_op, const at::Tensor& output,
                            const std::function<Native()>& begin,
                            std::function<void()> finish) const;
  // For point-to-point calls; the caller waits.
  Work start(Work::State::Kind kind, const std::function<Native()>& begin,
             std::function<void()> finish = {}) const;

 private:
  Native begun(const std::function<Native()>& begin) const;

  const char* name_;
  std::shared_ptr<ProcessGroup::State> group_;
  c10::intrusive_ptr<c10d::ProcessGroup> pg_;
};

}  // namespace cpprun::dist

#include "cpprun/dist/collectives/call.hpp"

#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <sstream>

#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/debug_checks.hpp"
#include "cpprun/worker/agent_link.hpp"

namespace cpprun::dist {

std::string dtype_name(at::ScalarType type) {
  return std::string(c10::getDtypeNames(type).first);  // a string_view from LibTorch 2.15 on
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text << dtype_name(tensor.scalar_type()) << ' ' << tensor.sizes();
  return text.str();
}

Call::Call(const char* name, const ProcessGroup& group)
    : name_(name), group_(resolve(group, name)) {
  const std::string broken = group_->health.broken();
  if (!broken.empty()) {
    throw DistStateError(where() +
                         ": the group is broken since an earlier error; destroy it and "
                         "make a new one. The error was: " +
                         broken);
  }
  const std::lock_guard lock(group_->mutex);
  pg_ = group_->pg;
  if (!pg_) throw DistStateError(where() + ": this process does not belong to the group");
}

std::string Call::where() const { return std::string(name_) + " in " + describe(*group_); }
void Call::refuse(const std::string& what) const { throw DistArgumentError(where() + ": " + what); }
void Call::unsupported(const std::string& what) const {
  throw DistUnsupportedError(where() + ": " + what);
}

int Call::group_rank(int global_rank, const char* argument) const {
  const auto& ranks = group_->ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), global_rank);
  if (found != ranks.end()) return static_cast<int>(found - ranks.begin());
  refuse(std::string(argument) + " is global rank " + std::to_string(global_rank) +
         ", which is not in the group; its ranks are " + c10::str(c10::ArrayRef<int>(ranks)));
}

void Call::check(const at::Tensor& tensor, const char* argument) const {
  if (!tensor.defined()) refuse(std::string(argument) + " is an undefined tensor");
  if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
    refuse(std::string(argument) + " must be dense, it is " + c10::str(tensor.layout()));
  }
  std::string known;
  for (const c10::Device device : pg_->getDeviceTypes()) {
    if (device.type() == tensor.device().type()) return;
    known += (known.empty() ? "" : ", ") + c10::DeviceTypeName(device.type(), true);
  }
  refuse(std::string(argument) + " is on " + tensor.device().str() +
         ", the group has a backend for: " + known);
}

void Call::check_written(const at::Tensor& tensor, const char* argument) const {
  check(tensor, argument);
  if (at::has_internal_overlap(tensor) != at::MemOverlap::Yes) return;
  refuse(
      std::string(argument) + " is " + describe(tensor) +
      " with several elements at one place in memory, as expand() makes it, and can't be written "
      "to; pass a .contiguous() or .clone() of it");
}

void Call::check_written(const std::vector<at::Tensor>& list, const char* argument) const {
  for (size_t i = 0; i < list.size(); ++i) {
    check_written(list[i], (argument + ("[" + std::to_string(i) + "]")).c_str());
  }
}

void Call::check_same_dtype(const at::Tensor& tensor, const char* argument,
                            const at::Tensor& like) const {
  check(tensor, argument);
  if (tensor.scalar_type() == like.scalar_type() && tensor.device() == like.device()) return;
  refuse(std::string(argument) + " is " + describe(tensor) + " on " + tensor.device().str() +
         ", wanted is " + dtype_name(like.scalar_type()) + " on " + like.device().str());
}

void Call::check_same_shape(const at::Tensor& tensor, const char* argument,
                            const at::Tensor& like) const {
  check_same_dtype(tensor, argument, like);
  if (tensor.sizes() == like.sizes()) return;
  refuse(std::string(argument) + " is " + describe(tensor) + ", wanted is " + describe(like));
}

void Call::check_list(const std::vector<at::Tensor>& list, const char* argument,
                      const at::Tensor& like) const {
  if (list.size() != group_->ranks.size()) {
    refuse(std::string(argument) + " has " + std::to_string(list.size()) +
           " tensors, wanted is one for each of the " + std::to_string(size()) + " ranks");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    check_same_dtype(list[i], (argument + ("[" + std::to_string(i) + "]")).c_str(), like);
  }
}

std::string Call::backend_of(const at::Tensor& tensor) const {
  return translated(where(),
                    [&] { return pg_->getBackend(tensor.device().type())->getBackendName(); });
}

void Call::compare(const std::string& text, const Exchange& exchange) const {
  if (debug_checks()) compare_across_ranks(*this, text, exchange);
}

Call::Native Call::begun(const std::function<Native()>& begin) const {
  worker::count_collective();
  try {
    return begin();
  } catch (...) {
    const auto error = translate(std::current_exception(), where());
    try {
      std::rethrow_exception(error);
    } catch (const DistArgumentError&) {
      throw;
    } catch (const DistUnsupportedError&) {
      throw;
    } catch (const DistError& broken) {
      group_->health.mark_broken(broken.what());
      throw;
    }
  }
}

Work Call::start(Work::State::Kind kind, const std::function<Native()>& begin,
                 std::function<void()> finish) const {
  return Work(
      std::make_shared<Work::State>(kind, where(), group_, begun(begin), std::move(finish)));
}

Work Call::start(bool async_op, const std::function<Native()>& begin,
                 std::function<void()> finish) const {
  Work work = start(Work::State::Kind::Polled, begin, std::move(finish));
  if (!async_op) work.wait();
  return work;
}

Work Call::start_reduce_scatter(bool async_op, const at::Tensor& output,
                                const std::function<Native()>& begin,
                                std::function<void()> finish) const {
  using Kind = Work::State::Kind;
  Work work = start(is_gloo(output) ? Kind::EndsInWait : Kind::Polled, begin, std::move(finish));
  if (!async_op) work.wait();
  return work;
}

}  // namespace cpprun::dist

/// @file
/// DistributedCheckpoint: reads checkpoints of torch.distributed.checkpoint (DCP), as torchtitan,
/// FSDP2 programs and `cpprun_worker.Snapshot` write them: a folder with `.metadata` and the
/// `.distcp` files of the ranks. Python counterpart: torch.distributed.checkpoint.load.
///
///     cpprun::load_distributed_checkpoint(*net, "outputs/checkpoint/step-1000",
///                                         {.prefix = "model.", .names = {{"layers.",
///                                         "blocks."}}});
///
/// Each process reads whole tensors, whatever the number of ranks that wrote their parts; calls are
/// not collective. One part is in memory at a time, besides the result. Folders may come from
/// untrusted sources: nothing in them runs as code, and every length is checked. Errors are
/// std::runtime_error and name the file and the tensor. Reading is safe from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/object.hpp"
#include "cpprun/snapshot/name_rule.hpp"

namespace torch::nn {
class Module;
}

namespace cpprun {

/// The tensors and other objects of a checkpoint, by name. DCP joins the keys of nested dicts by
/// dots: "model.layers.0.weight".
class DistributedCheckpoint {
 public:
  /// `folder`: the one with `.metadata`. Reads and checks `.metadata`, and that the other files are
  /// as long as it states.
  explicit DistributedCheckpoint(const std::string& folder);
  ~DistributedCheckpoint();
  /// Moves the content. Afterwards the other object may only be assigned to or destroyed.
  DistributedCheckpoint(DistributedCheckpoint&&) noexcept;
  /// As the move constructor; drops what this object had.
  DistributedCheckpoint& operator=(DistributedCheckpoint&&) noexcept;

  std::vector<std::string> names() const;  ///< of the tensors, sorted
  /// True if there is a tensor of this name.
  bool contains(const std::string& name) const;
  /// The sizes of the whole tensor's dimensions; empty for a scalar.
  std::vector<int64_t> shape(const std::string& name) const;
  /// The dtype under torch's name, as "bfloat16".
  std::string dtype(const std::string& name) const;
  /// The whole tensor, in new memory on the CPU. Verifies the checksums of its parts.
  at::Tensor tensor(const std::string& name) const;
  /// As tensor(), into `into`, which has the same shape, any device and any dtype. After an error
  /// some parts may have been overwritten.
  void read(const std::string& name, const at::Tensor& into) const;

  /// Of the entries that are no tensors, such as the values of a scheduler; sorted.
  std::vector<std::string> object_names() const;
  /// One of these, if it consists of the types of dist::Object; other types are an error that names
  /// the type.
  dist::Object object(const std::string& name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Options of load_distributed_checkpoint().
struct LoadDistributedCheckpointOptions {
  /// Only tensors whose name begins with it are looked at; it is removed before the rules apply.
  /// "model." leaves out the optimizer.
  std::string prefix = {};
  /// The first rule that fits a name applies; other names stay as they are.
  std::vector<NameRule> names = {};
  /// A tensor that only the checkpoint or only the module has is an error. A parameter that the
  /// module has under several names needs one of them only.
  bool strict = true;
  /// Otherwise floating-point numbers may have another precision in the module, as in Python's
  /// load_state_dict.
  bool exact_dtype = false;
};

/// Loads parameters and buffers, on any device. Overwrites nothing if any name, shape or dtype is
/// wrong; a damaged part is found while its tensor is read. Throws std::invalid_argument for a rule
/// that makes no sense.
void load_distributed_checkpoint(torch::nn::Module& module, const std::string& folder,
                                 const LoadDistributedCheckpointOptions& options = {});

}  // namespace cpprun

/// @file
/// The whole worker SDK with LibTorch, for training programs.
///
/// Compiling it takes as long as <torch/torch.h>; cpprun_precompile() of the CMake package does
/// that once per target. A source file that needs one class only can include that class's header.
#pragma once

#include "cpprun/data/data_loader.hpp"
#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/data/group_shuffle_split.hpp"
#include "cpprun/data/loader.hpp"
#include "cpprun/data/sampler.hpp"
#include "cpprun/data/unpadded_distributed_sampler.hpp"
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/device_mesh.hpp"
#include "cpprun/dist/errors.hpp"
#include "cpprun/dist/nn/functional.hpp"
#include "cpprun/dist/objects.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/store.hpp"
#include "cpprun/dist/work.hpp"
#include "cpprun/elastic/elastic.hpp"
#include "cpprun/elastic/elastic_steps.hpp"
#include "cpprun/nn/checkpoint.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/nn/sync_batch_norm.hpp"
#include "cpprun/optim/autocast.hpp"
#include "cpprun/optim/clip_grad.hpp"
#include "cpprun/optim/fused.hpp"
#include "cpprun/optim/grad_scaler.hpp"
#include "cpprun/optim/lr_scheduler.hpp"
#include "cpprun/optim/swa_utils.hpp"
#include "cpprun/optim/zero_redundancy_optimizer.hpp"
#include "cpprun/pch.hpp"
#include "cpprun/snapshot/distributed_checkpoint.hpp"
#include "cpprun/snapshot/safetensors.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/snapshot/state_dict.hpp"
#include "cpprun/trainer/trainer.hpp"
#include "cpprun/worker.hpp"

/// @mainpage
/// The worker SDK for training programs in C++ has two libraries. `cpprun/torch.hpp` includes all
/// of both, `cpprun/worker.hpp` the part without LibTorch; `cpprun/worker.h` is its form for C.
///
/// | namespace | what it has |
/// | --- | --- |
/// | cpprun | cpprun::main, Snapshot, Trainer, files of published models |
/// | cpprun::dist | process groups, collectives, stores, objects |
/// | cpprun::nn::parallel | DistributedDataParallel |
/// | cpprun::data | samplers and loaders |
/// | cpprun::optim | schedulers, GradScaler, ZeroRedundancyOptimizer |
/// | cpprun::worker | environment, heartbeats, stop requests, store client |
///
/// The text of a header, under "Files", has an example, the threads, the errors and the Python
/// counterpart of what it declares.

/// @namespace cpprun
/// Training programs under cpprun, torchrun or without a launcher.
/// @namespace cpprun::data
/// Samplers that divide a data set among ranks, and loaders. Python: torch.utils.data.
/// @namespace cpprun::dist
/// Process groups and communication between ranks. Python: torch.distributed.
/// @namespace cpprun::dist::nn
/// Python: torch.distributed.nn.
/// @namespace cpprun::dist::nn::functional
/// Collectives through which gradients flow. Python: torch.distributed.nn.functional.
/// @namespace cpprun::nn
/// Layers that communicate. Python: torch.nn.
/// @namespace cpprun::nn::parallel
/// DistributedDataParallel, its options and its hooks. Python: torch.nn.parallel.
/// @namespace cpprun::nn::utils
/// clip_grad_norm_() and clip_grad_value_() of cpprun::optim. Python: torch.nn.utils.
/// @namespace cpprun::amp
/// GradScaler and Autocast of cpprun::optim. Python: torch.amp.
/// @namespace cpprun::optim
/// Schedulers, optimizers, mixed precision. Python: torch.optim.
/// @namespace cpprun::optim::swa_utils
/// Running averages of a model. Python: torch.optim.swa_utils.
/// @namespace cpprun::utils
/// Python: torch.utils.
/// @namespace cpprun::utils::checkpoint
/// Activation checkpointing. Python: torch.utils.checkpoint.
/// @namespace cpprun::worker
/// The part of the SDK without LibTorch. Python: the module cpprun_worker. Functions that can fail
/// return a Result<T>: `if (!result) print(result.error().text); else use(*result);`.

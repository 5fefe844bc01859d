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
#include "cpprun/snapshot/safetensors.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/snapshot/state_dict.hpp"
#include "cpprun/trainer/trainer.hpp"
#include "cpprun/worker.hpp"

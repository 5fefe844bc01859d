// What the SDK's own sources include of LibTorch, compiled once. Not <torch/torch.h>: the templates
// that it leaves to instantiate cost each file 4 s more. Private.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

/// @file
/// Precompiled header for training programs; see cpprun_precompile() of the CMake package.
#pragma once

#include <torch/torch.h>

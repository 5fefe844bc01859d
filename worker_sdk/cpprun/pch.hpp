// What a training program includes anyway, compiled once: see cpprun_precompile in the CMake
// package.
#pragma once

#include <torch/torch.h>

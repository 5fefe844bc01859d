// Replaces cuSOLVER's header of this name where only CUDA's runtime is installed. LibTorch's
// headers name the type; this library does not use it.
#pragma once

enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS = 0 };

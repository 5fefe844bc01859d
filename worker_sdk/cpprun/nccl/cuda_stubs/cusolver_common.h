// Stands in for cuSOLVER's header of this name where only CUDA's runtime is installed: LibTorch's
// headers name the type, and nothing here uses one.
#pragma once

enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS = 0 };

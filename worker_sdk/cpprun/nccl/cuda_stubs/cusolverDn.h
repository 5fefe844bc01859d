// Stands in for cuSOLVER's header of this name where only CUDA's runtime is installed: LibTorch's
// headers name the type, and nothing here makes one.
#pragma once

struct cusolverDnContext;
using cusolverDnHandle_t = cusolverDnContext*;

// Replaces cuSOLVER's header of this name where only CUDA's runtime is installed. LibTorch's
// headers name the type; this library does not use it.
#pragma once

struct cusolverDnContext;
using cusolverDnHandle_t = cusolverDnContext*;

/// @file
/// All of cpprun::worker, the part of the worker SDK without LibTorch: environment, heartbeats,
/// stop requests, snapshot reports, fault injection. C programs and other languages use
/// cpprun/worker.h.
#pragma once

#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/arena.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/faults.hpp"
#include "cpprun/worker/main.hpp"
#include "cpprun/worker/snapshot_notice.hpp"
#include "cpprun/worker/store_client.hpp"

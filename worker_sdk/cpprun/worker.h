/* cpprun::worker for C (C11) and for languages that call C. C++ programs use cpprun/worker.hpp. */
#ifndef CPPRUN_WORKER_H
#define CPPRUN_WORKER_H

#include "cpprun/worker/c_api.h"

#endif

#include "cpprun/worker/environment.hpp"

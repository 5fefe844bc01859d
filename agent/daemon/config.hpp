// Moved: agent/core/config.hpp.
#pragma once
#include "agent/core/config.hpp"

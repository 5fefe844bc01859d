// Only carries the precompiled header cpprun/pch.hpp.

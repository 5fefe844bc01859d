// Empty: CMake needs a source file to build the precompiled headers.

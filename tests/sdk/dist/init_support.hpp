// Shared by the cases of group set-up: options from words, and lines that the tests compare.
#pragma once

#include <string>

#include "cpprun/dist/process_group.hpp"
#include "tests/sdk/support/cases.hpp"

namespace cpprun::test {

// "name=value" for every rank, "1:name=value" for the process with RANK=1 only. Names are those of
// InitOptions; timeout in ms. The case reads words without "=".
dist::InitOptions options_of(const Words& words);

// RANK from the launcher, for lines of ranks without a group.
std::string launched_rank();

// Sum over ranks of (rank + 1) on the group, straight through c10d.
long sum_of_ranks(const dist::ProcessGroup& group = {});

// Prints one line in one write.
void print_line(const std::string& line);

// Runs `f`; a DistError becomes the line "rank R DistTimeoutError: ...".
int printing_errors(const std::function<void()>& f);

}  // namespace cpprun::test

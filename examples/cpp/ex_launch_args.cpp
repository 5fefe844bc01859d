// Prints its arguments, rank and world size: what a launcher gives to each worker. Needs no
// LibTorch. The C++ version of examples/python/launch_args_test.py, with the same output.
//
//   cpprun --nproc_per_node=4 ./ex_launch_args hello
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/main.hpp"

namespace {

// A string in the format of Python's repr().
std::string quoted(const std::string& word) {
  const bool has_single = word.find('\'') != std::string::npos;
  const char quote = has_single && word.find('"') == std::string::npos ? '"' : '\'';
  std::string text(1, quote);
  for (char letter : word) {
    if (letter == quote || letter == '\\') text += '\\';
    text += letter;
  }
  return text + quote;
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    // RANK, WORLD_SIZE and the others, parsed and checked; without a launcher, a world of one.
    const auto& environment = cpprun::worker::environment();
    if (!environment) throw std::runtime_error(environment.error().text);
    const auto& place = *environment;

    std::string words;
    for (int i = 0; i < args.argc; ++i) words += (i ? ", " : "") + quoted(args.argv[i]);
    // A single write, so that both lines stay together in the mixed output of all workers.
    std::printf(
        "[%s]\nProcess Id:%d, Rank: %d, Local Rank: %d, World Size: %d, Local World Size: %d\n",
        words.c_str(), getpid(), place.rank, place.local_rank, place.world_size,
        place.local_world_size);
  });
}

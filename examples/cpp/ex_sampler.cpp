// Prints the samples that a rank gets: DistributedSampler alone, without a process group.
//
//   ./ex_sampler --n 10 --k 3 --rank 1                        # 1 4 7 0: padded from the start
//   ./ex_sampler --n 10 --k 3 --rank 1 --drop-last            # 1 4 7
//   ./ex_sampler --n 10 --k 3 --rank 1 --shuffle --epoch 2    # Python's order, bit for bit
#include <sstream>

#include "cpprun/data/distributed_sampler.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    int64_t size = 10, seed = 0, epoch = 0;
    int world = 1, rank = 0;
    bool is_shuffled = false, drops_last = false;
    examples::Options("Prints the indices of a rank's samples.")
        .add("--n", size, "samples in the data set")
        .add("--k", world, "number of ranks")
        .add("--rank", rank, "the rank whose samples to print")
        .add("--shuffle", is_shuffled, "shuffle, differently in each training epoch")
        .add("--epoch", epoch, "training epoch")
        .add("--seed", seed, "seed of the shuffling; the same on all ranks")
        .add("--drop-last", drops_last, "drop the last samples instead of padding")
        .parse(args);

    cpprun::data::DistributedSampler sampler(static_cast<size_t>(size),
                                             {.num_replicas = world,
                                              .rank = rank,
                                              .shuffle = is_shuffled,
                                              .seed = static_cast<uint64_t>(seed),
                                              .drop_last = drops_last});
    sampler.set_epoch(epoch);  // without it, each training epoch repeats the order of the first

    std::ostringstream line;
    for (size_t index : sampler.indices()) line << (line.tellp() > 0 ? " " : "") << index;
    examples::print_line(line.str());
  });
}

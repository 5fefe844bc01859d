// Gathers objects of all ranks on one rank: tensors, containers, and your own types.
//
//   cpprun --nproc_per_node=3 ./ex_gather_objects
//
// gather_object returns all objects on one rank and nothing on the others; unlike Python's, it
// needs no list of the right length. It needs no barrier: collectives wait by themselves.
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/objects.hpp"
#include "cpprun/dist/process_group.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;

// A type of your own can be sent if these two functions are declared beside it.
struct Machine {
  std::string name;
};
std::string to_bytes(const Machine& machine) { return machine.name; }
void from_bytes(std::string_view bytes, Machine& machine) { machine.name = bytes; }

namespace {

// A tuple of supported types is supported too, without any functions to write.
using Report = std::tuple<at::Tensor, std::vector<int>, std::map<std::string, int>>;

Report make_report(int rank, c10::Device device) {
  return {torch::tensor({1 + rank}, torch::TensorOptions(device)),
          {1 + rank, 2 + rank, 3 + rank},
          {{"rank", rank}}};
}

std::string to_json(const Report& report) {
  const auto& [tensor, numbers, words] = report;
  std::ostringstream text;
  text << "{\"tensor\":" << examples::list(tensor) << ",\"list\":[";
  for (size_t i = 0; i < numbers.size(); ++i) text << (i ? "," : "") << numbers[i];
  text << "],\"dict\":{";
  for (const auto& [name, value] : words) text << '"' << name << "\":" << value;
  text << "}}";
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    bool uses_cuda = false;
    examples::Options("Gathers objects of all ranks on rank 0.")
        .add("--cuda", uses_cuda, "use tensors on this rank's GPU")
        .parse(args);

    // With a GPU, this call selects the rank's device: gathered tensors arrive there.
    auto group = dist::init_process_group_or_single({.backend = uses_cuda ? "auto" : "gloo"});
    const int rank = dist::get_rank();

    const auto reports = dist::gather_object(make_report(rank, dist::local_device()), 0);
    std::string line;
    for (const auto& report : reports) line += (line.empty() ? "[" : ",") + to_json(report);
    if (dist::is_main_process()) examples::print_line(line, "]");

    const auto machines = dist::gather_object(Machine{"worker " + std::to_string(rank)}, 0);
    for (const auto& machine : machines) examples::print_line("gathered from ", machine.name);
  });
}

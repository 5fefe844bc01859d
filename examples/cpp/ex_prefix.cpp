// Names with and without "module.": Python's DDP adds this prefix to every name if the wrapped
// model is saved; strip_prefix removes it.
//
//   ./ex_prefix                                # strips the names in a file that Python wrote
//   ./ex_prefix --save-wrapped wrapped.pt      # cpprun's DDP is no module and adds no prefix
#include <string>
#include <vector>

#include <torch/torch.h>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/snapshot/state_dict.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace {

using Names = std::vector<std::string>;

std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

// Strips only if all names have the prefix; otherwise it is not DDP's. Strips it once: the rest of
// "module.module_list.0.weight" belongs to the model.
void show_stripping() {
  Names saved{"module.net.weight", "module.module_list.0.weight", "module.submodule.bias"};
  examples::print_line("saved:    ", joined(saved));
  examples::print_line("stripped: ", joined(cpprun::strip_prefix(saved, "module.")));

  saved.push_back("step");
  examples::print_line("mixed:    ", joined(cpprun::strip_prefix(saved, "module.")));
}

// load_state_dict accepts both forms, so a plain model can load a wrapped model saved in Python.
void save_wrapped(const std::string& path) {
  auto group = cpprun::dist::init_process_group_or_single({.backend = "gloo"});
  cpprun::nn::parallel::DistributedDataParallel model(torch::nn::Linear(20, 1).ptr());
  cpprun::save_state_dict(model.module(), path);
  Names names;
  for (const auto& item : model.module().named_parameters()) names.push_back(item.key());
  examples::print_line(path, ": ", joined(names));
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    std::string path;
    examples::Options("Strips \"module.\" from the names of a saved model.")
        .add("--save-wrapped", path, "save a model wrapped in DDP, and print its names")
        .parse(args);
    path.empty() ? show_stripping() : save_wrapped(path);
  });
}

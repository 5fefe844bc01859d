// Names with and without "module.": what Python's DDP puts before every name when somebody saves
// the wrapped model, and how to get rid of it.
//
//   ./ex_prefix                                # strips the names of a file that Python wrote
//   ./ex_prefix --save-wrapped wrapped.pt      # cpprun's DDP is no module: no prefix to strip
#include <string>
#include <utility>

#include <torch/torch.h>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"
#include "examples/cpp/support/state_file.hpp"

namespace {

using examples::State;

// The same entries, without `prefix` before their names. All names must have it, else it is not
// what DDP put there and nothing changes. Only the first of several is taken away: in
// "module.submodule.bias" and "module.module.bias" the rest belongs to the model.
State strip_prefix(const State& state, const std::string& prefix) {
  State stripped = examples::new_state();
  for (const auto& item : state) {
    const auto& name = item.key().toStringRef();
    if (!name.starts_with(prefix)) return state;
    stripped.insert(name.substr(prefix.size()), item.value());
  }
  return stripped;
}

std::string names(const State& state) {
  std::string text;
  for (const auto& item : state) text += (text.empty() ? "" : " ") + item.key().toStringRef();
  return text;
}

void show_stripping() {
  State saved = examples::new_state();
  for (const char* name :
       {"module.net.weight", "module.module_list.0.weight", "module.submodule.bias"})
    saved.insert(name, torch::zeros(1));
  examples::say("saved:    ", names(saved));
  examples::say("stripped: ", names(strip_prefix(saved, "module.")));

  saved.insert("step", torch::zeros(1));
  examples::say("mixed:    ", names(strip_prefix(saved, "module.")));
}

void save_wrapped(const std::string& path) {
  auto group = cpprun::dist::init_process_group_or_solo({.backend = "gloo"});
  cpprun::nn::parallel::DistributedDataParallel model(torch::nn::Linear(20, 1).ptr());
  examples::save_state(path, examples::tensors_of(model.module()));
  examples::say(path, ": ", names(examples::load_state(path)));
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    std::string path;
    examples::Options("Strips \"module.\" from the names of a saved model.")
        .add("--save-wrapped", path, "save a model that DDP has wrapped, and show its names")
        .parse(args);
    path.empty() ? show_stripping() : save_wrapped(path);
  });
}

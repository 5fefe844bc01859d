// One module in one file, as torch.save(model.state_dict(), path) and its way back. For models to
// keep, to start from, to hand on; what continues a training is a Snapshot.
//
// Errors are std::runtime_error, which name the file. One thread. Python counterparts: torch.save,
// torch.load, Module.load_state_dict.
#pragma once

#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace cpprun {

// Parameters and buffers by name, without "module." whatever wraps the module. Written beside,
// flushed, renamed: `path` is one whole file at each moment, the old or the new.
void save_state_dict(const torch::nn::Module& module, const std::string& path);

// Into a module on any device. `path` may be a file of Python, with or without "module." and
// "_orig_mod." before the names, and a snapshot.pt: then its MODEL_STATE. With `strict`, names that
// only one of the two has are an error; other shapes always are.
void load_state_dict(torch::nn::Module& module, const std::string& path, bool strict = true);

// The names without `prefix`, if all of them have it; otherwise, as they are. Only the first one is
// taken away: what is left of "module.module_list.0.weight" is "module_list.0.weight".
std::vector<std::string> strip_prefix(const std::vector<std::string>& names,
                                      const std::string& prefix);

}  // namespace cpprun

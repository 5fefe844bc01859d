/// @file
/// Saves one module to one file and loads it, as torch.save(model.state_dict(), path) does. For
/// finished or pretrained models; to continue a training run use Snapshot.
///
/// Not collective: with several ranks, let one of them save. Errors are std::runtime_error and name
/// the file. Not thread-safe for one module. Python counterparts: torch.save, torch.load,
/// Module.load_state_dict.
#pragma once

#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace cpprun {

/// Writes parameters and buffers by name, never with DDP's "module." prefix. Writes a temporary
/// file, flushes it and renames it: at every moment `path` is the complete old or the complete new
/// file.
void save_state_dict(const torch::nn::Module& module, const std::string& path);

/// Loads into a module on any device. `path` may be a file that Python saved, with or without the
/// prefixes "module." and "_orig_mod.", or a snapshot.pt, of which MODEL_STATE is read. With
/// `strict`, a name that only the file or only the module has is an error; different shapes always
/// are.
void load_state_dict(torch::nn::Module& module, const std::string& path, bool strict = true);

/// Removes `prefix` from all names if all of them have it; else returns them unchanged. Removes it
/// once: "module.module_list.0.weight" becomes "module_list.0.weight".
std::vector<std::string> strip_prefix(const std::vector<std::string>& names,
                                      const std::string& prefix);

}  // namespace cpprun

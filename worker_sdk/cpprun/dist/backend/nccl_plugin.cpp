#include "cpprun/dist/backend/nccl_plugin.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include <torch/version.h>

#include "cpprun/dist/errors.hpp"
#include "cpprun/dist/init/init_plan.hpp"

namespace cpprun::dist {
namespace {

constexpr const char* kLibrary = "libcpprun_nccl.so";
constexpr const char* kInstead = "; use backend gloo, or ";

// Tried in this order; for the last one dlopen searches the library path.
std::vector<std::string> candidates() {
  if (const auto named = own_variable("CPPRUN_NCCL_PLUGIN"); named && !named->empty()) {
    return {*named};
  }
  std::error_code ignored;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  return {folder / kLibrary, folder / ".." / "lib" / kLibrary, kLibrary};
}

void* open_library() {
  std::string tried;
  for (const std::string& path : candidates()) {
    if (path.front() == '/' && access(path.c_str(), F_OK) != 0) {
      tried += "\n  " + path + ": no such file";
      continue;
    }
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    tried += std::string("\n  ") + dlerror();
  }
  std::string text = "nccl needs the plugin ";
  for (const char* part : {kLibrary, ", which could not be loaded", kInstead}) text += part;
  throw DistUnsupportedError(text + "name its path in CPPRUN_NCCL_PLUGIN. Tried:" + tried);
}

const NcclPlugin& load() {
  const auto entry = reinterpret_cast<NcclPluginEntry>(dlsym(open_library(), kNcclPluginSymbol));
  const NcclPlugin* plugin = entry == nullptr ? nullptr : entry();
  if (plugin == nullptr || plugin->version != kNcclPluginVersion) {
    throw DistUnsupportedError(std::string(kLibrary) +
                               " belongs to another version of the SDK; build both together");
  }
  if (std::strcmp(plugin->torch_version, TORCH_VERSION) != 0) {
    throw DistUnsupportedError(std::string(kLibrary) + " was built with LibTorch " +
                               plugin->torch_version + ", this program with " + TORCH_VERSION +
                               "; build both together");
  }
  const std::string complaint = plugin->complaint();
  if (!complaint.empty()) throw DistUnsupportedError(complaint);
  return *plugin;
}

// These device files exist on every machine and in every container that may use a GPU.
bool looks_like_gpu() {
  const std::string visible = own_variable("CUDA_VISIBLE_DEVICES").value_or("all");
  if (visible.empty() || visible == "-1") return false;
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

DistUnsupportedError no_gpu() {
  return DistUnsupportedError(
      std::string("nccl needs a GPU; none found by this process") + kInstead +
      "look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES, which is " +
      (own_variable("CUDA_VISIBLE_DEVICES") ? "'" + *own_variable("CUDA_VISIBLE_DEVICES") + "'"
                                            : "not set"));
}

}  // namespace

const NcclPlugin& nccl_plugin() {
  static const NcclPlugin& plugin = load();  // after an exception the next call tries again
  return plugin;
}

const NcclPlugin& nccl_plugin_with_gpu() {
  if (!looks_like_gpu()) throw no_gpu();
  const NcclPlugin& plugin = nccl_plugin();
  if (plugin.gpu_count() == 0) throw no_gpu();
  return plugin;
}

bool has_gpu() {
  if (!looks_like_gpu()) return false;
  try {
    return nccl_plugin().gpu_count() > 0;
  } catch (const DistUnsupportedError& error) {
    std::fprintf(stderr, "cpprun: there is a GPU, but backend auto means gloo: %s\n", error.what());
    return false;
  }
}

}  // namespace cpprun::dist

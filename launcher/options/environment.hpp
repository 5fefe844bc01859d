// The launcher's surroundings as a value: resolve() reads the machine only through it, so that
// tests can replace it. real_environment() reads lazily; most launches need few of these.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/tls/job_secret.hpp"
#include "launcher/options/numa.hpp"

namespace cpprun {

enum class FileKind {
  Missing,
  Directory,
  Program,  // ELF
  Script,   // begins with #! and names an interpreter other than Python
  Other,    // the rest, Python scripts included; also pipes and devices, which are not opened
};

struct FileFacts {
  FileKind kind = FileKind::Missing;
  bool is_executable = false;  // by this user
};

struct GpuProbe {
  int count = 0;
  std::string why_none;  // "no NVIDIA driver on this machine"; only when count is 0
};

struct Environment {
  std::vector<std::string> variables;                         // "NAME=value", in their order
  std::function<int()> count_cpus = [] { return 1; };         // of the machine, as torchrun counts
  std::function<int()> count_usable_cpus = [] { return 1; };  // by affinity and cgroup quota
  std::function<GpuProbe()> probe_gpus = [] { return GpuProbe{0, "not looked for"}; };
  std::function<Topology()> read_topology = [] { return Topology{}; };
  std::function<FileFacts(const std::string& path)> look_at = [](const std::string&) {
    return FileFacts{};
  };
  // At most `most` bytes of it; nothing if it cannot be read.
  std::function<std::optional<std::string>(const std::string& path, size_t most)> read_file =
      [](const std::string&, size_t) { return std::nullopt; };
  // Whether the folder is on a file system that several machines share.
  std::function<bool(const std::string& path)> is_shared_folder = [](const std::string&) {
    return false;
  };
  // CPPRUN_SECRET, which is not among the variables. Null: unset.
  std::shared_ptr<const JobSecret> secret{};
  ReadSecret read_secret = [](const std::string& path) {
    return Error{ErrorKind::BadValue, path + ": not looked for"};
  };
  std::function<std::string()> make_uuid = [] {
    return std::string("00000000-0000-4000-8000-000000000000");
  };

  // The first one of that name; nothing if unset (an empty one is set).
  std::optional<std::string_view> variable(std::string_view name) const;
  // The same with "" for unset, where both mean the same.
  std::string_view text(std::string_view name) const { return variable(name).value_or(""); }
};

Environment real_environment();

// How exec would find `program`: the path itself if it has a slash, else the first executable on
// PATH; "" if none.
std::string find_program(const Environment& environment, std::string_view program);

}  // namespace cpprun

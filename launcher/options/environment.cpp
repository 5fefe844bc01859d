#include "launcher/options/environment.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "common/machine/files.hpp"
#include "common/machine/identity.hpp"
#include "common/machine/usable_cpus.hpp"
#include "common/text.hpp"
#include "launcher/options/gpus.hpp"

namespace cpprun {
namespace {

// Opens only regular files: reading a pipe such as <(...) would take the worker's input away.
FileKind kind_of_content(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FileKind::Other;
  std::array<char, 128> start{};
  ssize_t n = ::read(file, start.data(), start.size());
  ::close(file);
  std::string_view text(start.data(), n > 0 ? static_cast<size_t>(n) : 0);
  if (text.starts_with("\x7f"
                       "ELF"))
    return FileKind::Program;
  if (!text.starts_with("#!")) return FileKind::Other;
  bool is_python = text.substr(0, text.find('\n')).find("python") != std::string_view::npos;
  return is_python ? FileKind::Other : FileKind::Script;
}

FileFacts look_at_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  bool is_executable = ::access(path.c_str(), X_OK) == 0;
  if (S_ISDIR(status.st_mode)) return {FileKind::Directory, is_executable};
  if (!S_ISREG(status.st_mode)) return {FileKind::Other, false};
  return {kind_of_content(path), is_executable};
}

int count_online_cpus() {
  long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<int>(count) : 1;
}

// By the type of the file system. FUSE may be either, so it does not count.
bool is_shared_folder(const std::string& path) {
  constexpr uint64_t kShared[] = {
      0x6969,      // NFS
      0x517B,      // SMB
      0xFE534D42,  // SMB 2
      0xFF534D42,  // CIFS
      0x0BD00BD0,  // Lustre
      0x47504653,  // GPFS
      0x00C36400,  // CephFS
      0x19830326,  // BeeGFS
      0x5346414F,  // AFS
      0xAAD7AAEA,  // PanFS
      0x01161970,  // GFS2
      0x7461636F   // OCFS2
  };
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  return std::ranges::count(kShared, static_cast<uint32_t>(info.f_type)) > 0;
}

// Version 4, as torchrun's.
std::string random_uuid() {
  auto bytes = random_bytes();
  bytes[6] = static_cast<uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<uint8_t>((bytes[8] & 0x3f) | 0x80);
  std::string uuid = text::hex(bytes);
  for (size_t at : {8u, 13u, 18u, 23u}) uuid.insert(at, "-");
  return uuid;
}

}  // namespace

std::optional<std::string_view> Environment::variable(std::string_view name) const {
  for (std::string_view entry : variables) {
    if (const auto value = text::value_of(entry, name)) return value;
  }
  return std::nullopt;
}

Environment real_environment() {
  Environment made;
  // glibc's own name of environ: a program linked for an older glibc (packaging/wheel/relink.py)
  // does not know that they are aliases.
  for (char** entry = __environ; entry != nullptr && *entry != nullptr; ++entry) {
    made.variables.emplace_back(*entry);
  }
  made.count_cpus = count_online_cpus;
  made.count_usable_cpus = usable_cpus;
  made.look_at = look_at_file;
  made.read_file = read_file;
  made.is_shared_folder = is_shared_folder;
  made.read_secret = JobSecret::read;
  made.make_uuid = random_uuid;
  std::optional<std::string> pretended;
  std::optional<std::string> visible;
  if (auto text = made.variable("CPPRUN_TEST_GPUS")) pretended = *text;
  if (auto text = made.variable("CUDA_VISIBLE_DEVICES")) visible = *text;
  made.probe_gpus = [pretended, visible] { return probe_gpus(pretended, visible); };
  made.read_topology = [pretended, visible] {
    std::optional<int> gpus;
    if (pretended) gpus = probe_gpus(pretended, visible).count;
    return read_topology("", own_cpus(), visible, gpus);
  };
  return made;
}

std::string find_program(const Environment& environment, std::string_view program) {
  auto is_program = [&](const std::string& path) {
    FileFacts facts = environment.look_at(path);
    return facts.is_executable && facts.kind != FileKind::Directory;
  };
  if (program.empty()) return "";
  if (program.find('/') != std::string_view::npos) {
    return is_program(std::string(program)) ? std::string(program) : "";
  }
  // Without PATH, exec uses the C library's default.
  std::string_view path = environment.variable("PATH").value_or("/bin:/usr/bin");
  for (const std::string& folder : text::split(path, ':')) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + std::string(program);
    if (is_program(candidate)) return candidate;
  }
  return "";
}

}  // namespace cpprun

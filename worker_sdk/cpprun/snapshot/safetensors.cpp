#include "cpprun/snapshot/safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <stdexcept>

#include <ATen/ATen.h>

#include "common/limits/snapshots.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"
#include "cpprun/snapshot/state/load_by_name.hpp"
#include "cpprun/snapshot/state/module_tensors.hpp"
#include "snapshot_files/archive/safetensors_header.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;
using archive::SafetensorsEntry;
using snapshot_files::real_files;

constexpr const char* kFileName = "model.safetensors";
constexpr const char* kIndexEnd = ".index.json";

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

[[noreturn]] void fail_with_errno(const std::string& path, const char* what) {
  const int error = errno;  // before the texts are made
  throw std::runtime_error(system_error(path + ": " + what, error).text);
}

template <class T>
T or_fail(const std::string& path, Result<T> result) {
  if (!result) fail(path, result.error().text);
  return std::move(*result);
}

}  // namespace

namespace snapshot {

// One file, mapped. Pages are private: a program may write to a tensor.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) : path_(path) {
    fd_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd_.get() < 0) fail_with_errno(path, "cannot be opened");
    struct stat found {};
    if (::fstat(fd_.get(), &found) != 0) fail_with_errno(path, "cannot be examined");
    if (!S_ISREG(found.st_mode)) fail(path, "it is no regular file");
    bytes_ = static_cast<uint64_t>(found.st_size);
    std::byte first[archive::kSafetensorsLengthBytes] = {};
    if (bytes_ >= sizeof first) read_at(0, {first, sizeof first});
    const uint64_t length = or_fail(path, archive::safetensors_header_bytes(first, bytes_));
    std::string json(length, '\0');
    read_at(sizeof first, archive::writable_bytes_of(json));
    header_ = or_fail(path, archive::parse_safetensors_header(json, bytes_));
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_.get(), 0);
    if (memory_ == MAP_FAILED) fail_with_errno(path, "cannot be mapped into memory");
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { ::munmap(memory_, bytes_); }

  void read_at(uint64_t offset, archive::Bytes into) const {
    while (!into.empty()) {
      const ssize_t got = ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_with_errno(path_, "cannot be read");
      if (got == 0) fail(path_, "it has become shorter while it is read");
      into = into.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
  }
  std::byte* at(uint64_t offset) const { return static_cast<std::byte*>(memory_) + offset; }
  const std::string& path() const { return path_; }
  const archive::SafetensorsHeader& header() const { return header_; }

 private:
  const std::string path_;
  UniqueFd fd_;
  uint64_t bytes_ = 0;
  archive::SafetensorsHeader header_;
  void* memory_ = nullptr;
};

}  // namespace snapshot

namespace {

using snapshot::MappedFile;

at::ScalarType scalar_type(const MappedFile& file, const SafetensorsEntry& entry) {
  const auto& known = c10::getStringToDtypeMap();
  const auto found = known.find(entry.dtype);
  if (!entry.dtype.empty() && found != known.end()) return found->second;
  fail(file.path(), "tensor '" + entry.name + "' has the dtype " +
                        text::printable(entry.dtype_in_file) + ", which this LibTorch lacks");
}

// The file itself, or what is in the folder.
std::string locate(const std::string& path) {
  std::error_code ignored;  // opening reports it
  if (!fs::is_directory(path, ignored)) return path;
  const fs::path whole = fs::path(path) / kFileName;
  if (fs::exists(whole, ignored)) return whole.string();
  const std::string index = whole.string() + kIndexEnd;
  if (fs::exists(index, ignored)) return index;
  fail(path, std::string("the folder has neither ") + kFileName + " nor " + kFileName + kIndexEnd);
}

std::string read_index(const std::string& path) {
  const auto file = or_fail(path, real_files().open_to_read(path, true));
  const uint64_t bytes = or_fail(path, file->size());
  if (bytes > limits::kSafetensorsHeaderBytes) fail(path, "it is too long for an index");
  return or_fail(path, file->read_text(0, bytes));
}

}  // namespace

struct Safetensors::Impl {
  struct Place {
    std::shared_ptr<const MappedFile> file;
    const SafetensorsEntry* entry;
  };
  explicit Impl(const std::string& given) : path(locate(given)) {
    path.ends_with(kIndexEnd) ? open_index() : add(std::make_shared<MappedFile>(path), {});
  }
  void open_index();
  // `wanted`: the tensors that are in the file, according to the index; empty: all.
  void add(const std::shared_ptr<const MappedFile>& file, const std::set<std::string>& wanted);
  const Place& find(const std::string& name) const;

  std::string path;
  std::map<std::string, Place> places;
  std::map<std::string, std::string> metadata;
};

void Safetensors::Impl::open_index() {
  const auto index = or_fail(path, archive::parse_safetensors_index(read_index(path)));
  std::map<std::string, std::set<std::string>> of_files;
  for (const auto& [name, file] : index) of_files[file].insert(name);
  if (of_files.size() > limits::kSafetensorsFiles) fail(path, "it names too many files");
  for (const auto& [file, names] : of_files) {
    add(std::make_shared<MappedFile>((fs::path(path).parent_path() / file).string()), names);
    for (const std::string& name : names) {
      if (!places.contains(name)) fail(path, "tensor '" + name + "' is not in " + file);
    }
  }
}

void Safetensors::Impl::add(const std::shared_ptr<const MappedFile>& file,
                            const std::set<std::string>& wanted) {
  for (const SafetensorsEntry& entry : file->header().tensors) {
    if (wanted.empty() || wanted.contains(entry.name)) places[entry.name] = {file, &entry};
  }
  metadata.insert(file->header().metadata.begin(), file->header().metadata.end());
}

const Safetensors::Impl::Place& Safetensors::Impl::find(const std::string& name) const {
  const auto found = places.find(name);
  if (found == places.end()) fail(path, "it has no tensor '" + name + "'");
  return found->second;
}

Safetensors::Safetensors(const std::string& path) : impl_(new Impl(path)) {}
Safetensors::~Safetensors() = default;
Safetensors::Safetensors(Safetensors&&) noexcept = default;
Safetensors& Safetensors::operator=(Safetensors&&) noexcept = default;

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> all;
  for (const auto& [name, place] : impl_->places) all.push_back(name);
  return all;
}

bool Safetensors::contains(const std::string& name) const { return impl_->places.contains(name); }

std::vector<int64_t> Safetensors::shape(const std::string& name) const {
  return impl_->find(name).entry->shape;
}

std::string Safetensors::dtype(const std::string& name) const {
  const auto& [file, entry] = impl_->find(name);
  return std::string(c10::getDtypeNames(scalar_type(*file, *entry)).first);
}

at::Tensor Safetensors::tensor(const std::string& name) const {
  const auto& [file, entry] = impl_->find(name);
  const at::ScalarType type = scalar_type(*file, *entry);
  // Elements of 8 bytes may follow some of 2 bytes.
  if (entry->offset % c10::elementSize(type) != 0 || entry->bytes == 0) {
    const at::Tensor copy = at::empty(entry->shape, type);
    read(name, copy);
    return copy;
  }
  return at::from_blob(
      file->at(entry->offset), entry->shape, [kept = file](void*) {}, at::TensorOptions(type));
}

void Safetensors::read(const std::string& name, const at::Tensor& into) const {
  const auto& [file, entry] = impl_->find(name);
  const at::ScalarType type = scalar_type(*file, *entry);
  const at::Tensor target = into.detach();
  if (target.sizes() != at::IntArrayRef(entry->shape)) {
    fail(file->path(), "tensor '" + name + "' has the shape " + snapshot::shown(entry->shape) +
                           ", wanted is " + snapshot::shown(target.sizes()));
  }
  const bool is_alike = target.device().is_cpu() && target.is_contiguous() && !target.is_neg() &&
                        target.scalar_type() == type;
  if (is_alike) {
    file->read_at(entry->offset, {static_cast<std::byte*>(target.data_ptr()), target.nbytes()});
  } else {
    target.copy_(tensor(name));
  }
}

const std::map<std::string, std::string>& Safetensors::metadata() const { return impl_->metadata; }

namespace {

Status write_draft(snapshot_files::File& file, const std::string& front,
                   const std::vector<at::Tensor>& tensors) {
  if (Status wrote = file.write_at(0, archive::bytes_of(front)); !wrote) return wrote;
  uint64_t at = front.size();
  for (const at::Tensor& each : tensors) {
    const at::Tensor whole = each.detach().resolve_conj().resolve_neg().cpu().contiguous();
    const archive::ConstBytes bytes(static_cast<const std::byte*>(whole.const_data_ptr()),
                                    whole.nbytes());
    if (Status wrote = file.write_at(at, bytes); !wrote) return wrote;
    at += bytes.size();
  }
  return file.sync();
}

}  // namespace

void load_safetensors(torch::nn::Module& module, const std::string& path,
                      const LoadSafetensorsOptions& options) {
  snapshot::check_rules("load_safetensors", options.names);
  const Safetensors file(path);
  snapshot::load_by_name(module, snapshot::TensorsOf<Safetensors>(file), path,
                         {"", options.names, options.strict, options.exact_dtype});
}

void save_safetensors(const std::map<std::string, at::Tensor>& tensors, const std::string& path,
                      const std::map<std::string, std::string>& metadata) {
  // Wide elements first, so that each tensor begins at a multiple of its element.
  std::vector<std::pair<std::string, at::Tensor>> sorted(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : sorted) {
    if (tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized()) continue;
    fail(path, "tensor '" + name + "' is undefined or not dense");
  }
  std::ranges::stable_sort(sorted, std::greater(),
                           [](const auto& each) { return each.second.itemsize(); });
  std::vector<SafetensorsEntry> entries;
  std::vector<at::Tensor> contents;
  for (const auto& [name, tensor] : sorted) {
    entries.push_back({.name = name,
                       .dtype = std::string(c10::getDtypeNames(tensor.scalar_type()).first),
                       .shape = tensor.sizes().vec(),
                       .bytes = static_cast<uint64_t>(tensor.numel()) * tensor.itemsize()});
    contents.push_back(tensor);
  }
  auto described = metadata;
  described.emplace("format", "pt");  // Python's libraries refuse files without it
  const std::string front = or_fail(path, archive::encode_safetensors_header(entries, described));
  const auto draft = or_fail(path, snapshot_files::create_file_draft(real_files(), path));
  Status placed = write_draft(*draft.file, front, contents);
  if (placed) placed = real_files().rename(draft.path, path);
  if (placed) placed = real_files().sync_folder(fs::absolute(path).parent_path());
  if (placed) return;
  static_cast<void>(real_files().remove_file(draft.path));
  throw std::runtime_error(placed.error().text);
}

void save_safetensors(const torch::nn::Module& module, const std::string& path) {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::map<const at::TensorImpl*, std::string> first;
  for (const snapshot::Named& each : snapshot::tensors_of(module)) {
    const auto [known, is_new] = first.emplace(each.tensor.unsafeGetTensorImpl(), each.name);
    is_new ? static_cast<void>(tensors.emplace(each.name, each.tensor))
           : static_cast<void>(metadata.emplace(each.name, known->second));
  }
  save_safetensors(tensors, path, metadata);
}

}  // namespace cpprun

#include "cpprun/snapshot/state_dict.hpp"

#include <torch/nn/module.h>

#include <filesystem>
#include <stdexcept>

#include "cpprun/snapshot/state/tracked.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"

namespace cpprun {
namespace {

using snapshot_files::real_files;

void check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().text);
}

Status write_draft(snapshot_files::File& file, const pickle::Value& value,
                   const std::map<std::string, at::Tensor>& by_name) {
  const auto written = archive::write_file(file, value, [&](const std::string& name) {
    const at::Tensor& bytes = by_name.at(name);
    return archive::ConstBytes(static_cast<const std::byte*>(bytes.const_data_ptr()),
                               static_cast<size_t>(bytes.numel()));
  });
  if (!written) return written.error();
  return file.sync();
}

Status write(const std::string& path, const pickle::Value& value,
             const std::vector<snapshot::Storage>& storages) {
  std::map<std::string, at::Tensor> by_name;
  for (const auto& each : storages) by_name.emplace(each.name, each.bytes.cpu());
  const auto draft = snapshot_files::create_file_draft(real_files(), path);
  if (!draft) return draft.error();
  Status placed = write_draft(*draft->file, value, by_name);
  if (placed) placed = real_files().rename(draft->path, path);
  if (placed) placed = real_files().sync_folder(std::filesystem::absolute(path).parent_path());
  if (!placed) static_cast<void>(real_files().remove_file(draft->path));
  return placed;
}

}  // namespace

void save_state_dict(const torch::nn::Module& module, const std::string& path) {
  const auto tracked = snapshot::track_module(const_cast<torch::nn::Module&>(module), true);
  snapshot::Capture capture;
  const pickle::Value value = tracked.save(capture);
  check(write(path, value, capture.take_storages()));
}

void load_state_dict(torch::nn::Module& module, const std::string& path, bool strict) {
  auto file = snapshot_files::open_tensor_file(real_files(), path);
  if (!file) throw std::runtime_error(file.error().text);
  check(file->verify());
  const pickle::Value* inner = file->value().find("MODEL_STATE");
  const pickle::Value value = inner == nullptr ? file->value() : *inner;
  const snapshot::FileStorages storages(
      std::make_shared<const archive::TensorFile>(std::move(*file)));
  try {
    snapshot::track_module(module, strict).load(value, storages);
  } catch (const std::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

}  // namespace cpprun

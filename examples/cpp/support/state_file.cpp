#include "examples/cpp/support/state_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/serialize.h>
#include <torch/torch.h>

namespace examples {
namespace {

void write_file(const std::string& path, const c10::IValue& value) {
  std::string pickled;
  torch::jit::Pickler pickler([&](const char* data, size_t size) { pickled.append(data, size); },
                              nullptr, nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(value);
  pickler.stop();
  caffe2::serialize::PyTorchStreamWriter writer(path);
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  int number = 0;
  for (const auto& tensor : pickler.tensorData()) {
    // Whole storages: a view's own bytes would leave the reader with a record of another size.
    const auto storage = torch::jit::getWriteableTensorData(tensor);
    writer.writeRecord("data/" + std::to_string(number++), storage.data(), storage.sizeInBytes());
  }
  writer.writeRecord("byteorder", "little", 6);
  writer.writeEndOfFile();
}

// What is written is on the disk when this returns. Folders are flushed as files are.
void flush(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_flushed = file >= 0 && fsync(file) == 0;
  const int error = errno;
  if (file >= 0) close(file);
  if (!is_flushed) throw std::system_error(error, std::generic_category(), path);
}

std::vector<std::pair<std::string, at::Tensor>> named_tensors(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& item : module.named_parameters()) all.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) all.emplace_back(item.key(), item.value());
  return all;
}

}  // namespace

State new_state() {
  return State(c10::StringType::get(), c10::AnyType::get());
}

State tensors_of(const torch::nn::Module& module) {
  State state = new_state();
  for (const auto& [name, tensor] : named_tensors(module)) state.insert(name, tensor.detach());
  return state;
}

void load_tensors(torch::nn::Module& module, const State& tensors) {
  torch::NoGradGuard no_grad;
  const auto mine = named_tensors(module);
  for (const auto& [name, tensor] : mine) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw std::runtime_error("the file has no tensor '" + name + "'");
    const auto value = found->value().toTensor();
    if (value.sizes() != tensor.sizes()) {
      std::ostringstream text;
      text << "the tensor '" << name << "' of the file has the shape " << value.sizes()
           << ", the module's has " << tensor.sizes();
      throw std::runtime_error(text.str());
    }
    tensor.detach().copy_(value);
  }
  if (tensors.size() != mine.size())
    throw std::runtime_error("the file has " + std::to_string(tensors.size()) +
                             " tensors, the module " + std::to_string(mine.size()));
}

at::Tensor bytes_of(const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  const std::string bytes = stream.str();
  return torch::from_blob(const_cast<char*>(bytes.data()), {static_cast<int64_t>(bytes.size())},
                          torch::kUInt8)
      .clone();
}

void load_bytes(torch::optim::Optimizer& optimizer, const at::Tensor& bytes) {
  torch::serialize::InputArchive archive;
  archive.load_from(static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel()));
  optimizer.load(archive);
}

void save_state(const std::string& path, const State& state) {
  const std::string part = path + ".part";
  write_file(part, state);
  flush(part);
  std::filesystem::rename(part, path);
  flush(std::filesystem::absolute(path).parent_path());
}

State load_state(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("can't open " + path);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  try {
    return torch::jit::pickle_load(bytes).toGenericDict();
  } catch (const std::exception& error) {
    throw std::runtime_error(path + " can't be read: " + error.what());
  }
}

std::string hash_of(const torch::nn::Module& module) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const auto& [name, tensor] : named_tensors(module)) {
    const auto whole = tensor.detach().cpu().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(whole.data_ptr());
    for (size_t i = 0; i < whole.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace examples

#include "examples/cpp/ranzcr/image_file.hpp"

#include <png.h>
#include <turbojpeg.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <vector>

#include <torch/torch.h>

namespace ranzcr {
namespace {

constexpr int64_t kMaxSide = 16384;

using Bytes = std::vector<uint8_t>;
using TurboJpeg = std::unique_ptr<void, int (*)(tjhandle)>;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw std::runtime_error("image " + path + ": " + why);
}

Bytes read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "missing, or not readable");
  return {std::istreambuf_iterator<char>(file), {}};
}

at::Tensor blank_image(const std::string& path, int64_t height, int64_t width) {
  if (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide)
    fail(path, std::to_string(width) + " x " + std::to_string(height) + " pixels is no X-ray");
  return torch::empty({height, width}, torch::kUInt8);
}

at::Tensor read_jpeg(const std::string& path, const Bytes& bytes) {
  const TurboJpeg reader(tjInitDecompress(), tjDestroy);
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(reader.get(), bytes.data(), bytes.size(), &width, &height, &sampling,
                          &colours) != 0)
    fail(path, std::string("broken JPEG: ") + tjGetErrorStr2(reader.get()));
  auto image = blank_image(path, height, width);
  // For a truncated file the library warns and fills with grey; we treat it as broken.
  if (tjDecompress2(reader.get(), bytes.data(), bytes.size(), image.data_ptr<uint8_t>(), width, 0,
                    height, TJPF_GRAY, 0) != 0)
    fail(path, std::string("broken JPEG: ") + tjGetErrorStr2(reader.get()));
  return image;
}

at::Tensor read_png(const std::string& path, const Bytes& bytes) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> freed(&header, png_image_free);
  if (png_image_begin_read_from_memory(&header, bytes.data(), bytes.size()) == 0)
    fail(path, std::string("broken PNG: ") + header.message);
  auto image = blank_image(path, header.height, header.width);
  header.format = PNG_FORMAT_GRAY;
  const png_color black{};
  if (png_image_finish_read(&header, &black, image.data_ptr<uint8_t>(), 0, nullptr) == 0)
    fail(path, std::string("broken PNG: ") + header.message);
  return image;
}

}  // namespace

at::Tensor read_image(const std::string& path) {
  const Bytes bytes = read_bytes(path);
  if (bytes.size() >= 2 && bytes[0] == 0xff && bytes[1] == 0xd8) return read_jpeg(path, bytes);
  if (bytes.size() >= 8 && png_sig_cmp(bytes.data(), 0, 8) == 0) return read_png(path, bytes);
  fail(path, bytes.empty() ? "empty" : "neither JPEG nor PNG");
}

void write_jpeg(const std::string& path, const at::Tensor& image) {
  const auto whole = image.contiguous();
  const TurboJpeg writer(tjInitCompress(), tjDestroy);
  uint8_t* data = nullptr;
  unsigned long size = 0;
  const int done =
      tjCompress2(writer.get(), whole.data_ptr<uint8_t>(), static_cast<int>(whole.size(1)), 0,
                  static_cast<int>(whole.size(0)), TJPF_GRAY, &data, &size, TJSAMP_GRAY, 95, 0);
  const std::unique_ptr<uint8_t, void (*)(uint8_t*)> freed(data, tjFree);
  if (done != 0) fail(path, tjGetErrorStr2(writer.get()));
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (!file.flush()) fail(path, "can't be written");
}

}  // namespace ranzcr

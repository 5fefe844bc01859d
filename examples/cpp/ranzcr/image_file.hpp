// Reads and writes greyscale JPEG and PNG files, with libjpeg-turbo and libpng.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace ranzcr {

// Returns height x width, uint8; converts colours to grey. Detects the format by the first bytes.
// Throws std::runtime_error with the file's name if it is missing, of another format, broken,
// truncated, or larger than 16384 pixels per side. Thread-safe.
at::Tensor read_image(const std::string& path);

// `image`: height x width, uint8.
void write_jpeg(const std::string& path, const at::Tensor& image);

}  // namespace ranzcr

// Grey images in JPEG and PNG files, by libjpeg-turbo and libpng.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace ranzcr {

// Height x width, uint8; colours become grey. Tells the two formats apart by their first bytes.
// Throws std::runtime_error that names the file: missing, of another format, broken, cut off, or
// larger than 16384 pixels a side. Any thread.
at::Tensor read_image(const std::string& path);

// `image`: height x width, uint8.
void write_jpeg(const std::string& path, const at::Tensor& image);

}  // namespace ranzcr

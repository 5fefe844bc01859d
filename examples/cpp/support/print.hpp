// Output of several processes on one terminal, and tensors as short text.
#pragma once

#include <iostream>
#include <sstream>
#include <string>

#include <ATen/core/Tensor.h>

namespace examples {

// Writes a line at once and flushes: lines of different ranks never mix, and none is lost if the
// process is killed.
template <class... Parts>
void print_line(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts) << '\n';
  std::cout << line.str() << std::flush;
}

// The elements of a tensor of any shape, flattened: "[6, 18]".
inline std::string list(const at::Tensor& tensor) {
  const auto flat = tensor.reshape(-1).to(at::kCPU, at::kDouble);
  std::ostringstream text;
  for (int64_t i = 0; i < flat.numel(); ++i) text << (i ? ", " : "[") << flat[i].item<double>();
  text << (flat.numel() ? "]" : "[]");
  return text.str();
}

}  // namespace examples

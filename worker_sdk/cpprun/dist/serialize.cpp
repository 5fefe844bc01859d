// The codec of tensors.
#include "cpprun/dist/serialize.hpp"

#include <algorithm>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {
namespace {

constexpr uint8_t kUndefined = 255;
constexpr uint8_t kDimensionsMax = 64;

enum Flags : uint8_t { kOnGpu = 1, kNeedsGradient = 2, kAllFlags = 3 };

// Accept only dtypes that are plain bytes, because the bytes come from other processes.
bool is_known(uint8_t type) {
  using enum at::ScalarType;
  constexpr at::ScalarType kKnown[] = {
      Byte,     Char,   Short,       Int,          Long,          Half,
      Float,    Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool,
      BFloat16, UInt16, UInt32,      UInt64,       Float8_e5m2,   Float8_e4m3fn};
  return std::ranges::find(kKnown, static_cast<at::ScalarType>(type)) != std::end(kKnown);
}

void check_sendable(const at::Tensor& value) {
  const bool is_dense = value.layout() == at::kStrided && !value.is_quantized();
  if (is_dense && is_known(static_cast<uint8_t>(value.scalar_type()))) return;
  throw DistUnsupportedError("serialize: only dense tensors of numbers, this one is " +
                             c10::str(value.layout(), ' ', value.scalar_type()));
}

std::vector<int64_t> read_sizes(ByteReader& from) {
  const auto count = from.number<uint8_t>();
  if (count > kDimensionsMax) from.bad("a tensor of " + std::to_string(count) + " dimensions");
  std::vector<int64_t> sizes;
  for (uint8_t i = 0; i < count; ++i) {
    sizes.push_back(from.number<int64_t>());
    if (sizes.back() < 0) from.bad("a tensor with a negative size");
  }
  return sizes;
}

// Bytes of all elements. Checks the other sizes of an empty tensor for overflow, too.
uint64_t bytes_of(ByteReader& from, const std::vector<int64_t>& sizes, uint64_t item) {
  uint64_t total = item;
  bool is_empty = false;
  for (const int64_t size : sizes) {
    if (size == 0) is_empty = true;
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(size == 0 ? 1 : size), &total)) {
      from.bad("a tensor with more bytes than can be");
    }
  }
  return is_empty ? 0 : total;
}

}  // namespace

void Codec<at::Tensor>::write(ByteWriter& to, const at::Tensor& value) {
  if (!value.defined()) return to.number(kUndefined);
  check_sendable(value);
  const at::Tensor dense = value.detach().cpu().resolve_conj().resolve_neg().contiguous();
  uint8_t flags = value.is_cuda() ? kOnGpu : 0;
  if (value.requires_grad()) flags = static_cast<uint8_t>(flags | kNeedsGradient);
  to.number(static_cast<uint8_t>(dense.scalar_type()));
  to.number(flags);
  to.number(static_cast<uint8_t>(dense.dim()));
  for (const int64_t size : dense.sizes()) to.number(size);
  to.raw(dense.data_ptr(), dense.nbytes());
}

at::Tensor Codec<at::Tensor>::read(ByteReader& from) {
  const auto type = from.number<uint8_t>();
  if (type == kUndefined) return {};
  if (!is_known(type)) from.bad("a tensor of unknown dtype " + std::to_string(type));
  const auto flags = from.number<uint8_t>();
  if (flags > kAllFlags) from.bad("a tensor with unknown flags " + std::to_string(flags));
  const auto sizes = read_sizes(from);
  const auto scalar = static_cast<at::ScalarType>(type);
  const auto bytes = from.raw(bytes_of(from, sizes, c10::elementSize(scalar)));
  if (scalar == at::kBool &&
      std::any_of(bytes.begin(), bytes.end(), [](char c) { return (c & ~1) != 0; })) {
    from.bad("a tensor of bools that are none");
  }
  at::Tensor value = at::empty(sizes, scalar);
  if (!bytes.empty()) std::memcpy(value.data_ptr(), bytes.data(), bytes.size());
  if ((flags & kOnGpu) != 0 && is_initialized()) value = value.to(local_device());
  const bool can_have_gradient = at::isFloatingType(scalar) || at::isComplexType(scalar);
  if ((flags & kNeedsGradient) != 0 && can_have_gradient) value.set_requires_grad(true);
  return value;
}

}  // namespace cpprun::dist

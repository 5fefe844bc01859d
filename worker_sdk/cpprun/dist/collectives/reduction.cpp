#include "cpprun/dist/collectives/reduction.hpp"

#include <array>

namespace cpprun::dist {
namespace {

using Native = c10d::ReduceOp;

struct Entry {
  const char* name;
  Native::RedOpType native;
};
// In the order of ReduceOp.
constexpr std::array kOps = {Entry{"SUM", Native::SUM},
                             Entry{"AVG", Native::AVG},
                             Entry{"PRODUCT", Native::PRODUCT},
                             Entry{"MIN", Native::MIN},
                             Entry{"MAX", Native::MAX},
                             Entry{"BAND", Native::BAND},
                             Entry{"BOR", Native::BOR},
                             Entry{"BXOR", Native::BXOR},
                             Entry{"PREMUL_SUM", Native::PREMUL_SUM}};

const Entry& entry(ReduceOp op) { return kOps.at(static_cast<size_t>(op)); }

[[noreturn]] void cannot(const Call& call, ReduceOp op, const std::string& why) {
  call.unsupported(std::string("Cannot use ReduceOp.") + name(op) + " with " + why);
}

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR;
}

void check_gloo(const Call& call, ReduceOp op, at::ScalarType type) {
  const std::string dtype = dtype_name(type);
  const bool is_integral = at::isIntegralType(type, /*includeBool=*/true);
  if (op == ReduceOp::PREMUL_SUM) cannot(call, op, "gloo (dtype " + dtype + "); it is nccl's");
  if (is_bitwise(op) && !is_integral) cannot(call, op, "non-integral dtype " + dtype + " on gloo");
  if (op == ReduceOp::AVG && is_integral) {
    cannot(call, op, "integral dtype " + dtype + " on gloo: it divides; use SUM");
  }
}

void check_nccl(const Call& call, ReduceOp op, at::ScalarType type) {
  if (is_bitwise(op)) cannot(call, op, "nccl (dtype " + dtype_name(type) + ")");
  if (op == ReduceOp::AVG && type == at::kBool) cannot(call, op, "dtype bool on nccl");
}

void check_dtype(const Call& call, ReduceOp op, const at::Tensor& tensor,
                 const std::string& backend) {
  const auto type = tensor.scalar_type();
  if (at::isComplexType(type)) {
    if (op == ReduceOp::SUM || op == ReduceOp::AVG) return;
    cannot(call, op, "complex dtype " + dtype_name(type) + " on " + backend);
  }
  if (!is_plain(type)) cannot(call, op, "dtype " + dtype_name(type) + " on " + backend);
}

// Keeps a bool valid: SUM of three `true` would store 3 in its byte.
ReduceOp for_bool(ReduceOp op) {
  if (op == ReduceOp::SUM) return ReduceOp::MAX;
  return op == ReduceOp::PRODUCT ? ReduceOp::MIN : op;
}

// Does what c10d's own factory does, whose name differs between versions.
Native times_before_sum(double factor) {
  Native op;
  op.op_ = Native::PREMUL_SUM;
  op.supplement_ = c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(factor);
  return op;
}

}  // namespace

const char* name(ReduceOp op) { return entry(op).name; }

Reduction reduction_for(const Call& call, ReduceOp op, const at::Tensor& tensor,
                        std::optional<double> factor) {
  const std::string backend = call.backend_of(tensor);
  const bool is_gloo = backend == "gloo";
  if (is_gloo) check_gloo(call, op, tensor.scalar_type());
  if (backend == "nccl") check_nccl(call, op, tensor.scalar_type());
  check_dtype(call, op, tensor, backend);
  if (op == ReduceOp::PREMUL_SUM) {
    if (!factor) call.refuse("PREMUL_SUM needs CallOptions::premul_factor");
    return {times_before_sum(*factor)};
  }
  if (tensor.scalar_type() == at::kBool) op = for_bool(op);
  if (is_gloo && op == ReduceOp::AVG) return {Native(Native::SUM), true};
  return {Native(entry(op).native)};
}

void divide_afterwards(const Call& call, const Reduction& reduction, const at::Tensor& result,
                       TensorPacking& packing) {
  if (!reduction.divides) return;
  packing.afterwards([result, size = call.size()] { result.div_(size); });
}

}  // namespace cpprun::dist

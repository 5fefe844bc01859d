// Tensors on their way to a file and back, and what only Python's files hold.
#include "cpprun/snapshot/tensors.hpp"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/sdk/snapshot/held_storages.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::TensorRef;
using test::HeldStorages;

at::Tensor waves() {
  return at::complex(at::tensor({1.F, 3.F}), at::tensor({2.F, -4.F}));
}

// torch.imag(z.conj()) is a negative view of z's storage.
TEST(SnapshotTensors, LazyNegativesAndConjugatesHaveTheirSigns) {
  const HeldStorages storages({{"z", waves()}});
  const TensorRef negative{"z", "float32", 4, 1, {2}, {2}, false, false, true};
  const TensorRef conjugate{"z", "complex64", 2, 0, {2}, {1}, false, true};
  EXPECT_TRUE(at::equal(make_tensor(negative, storages), at::tensor({-2.F, 4.F})));
  EXPECT_TRUE(at::equal(make_tensor(conjugate, storages), waves().conj()));
  const at::Tensor dense = at::zeros({2}, at::kComplexFloat);
  fill(dense, conjugate, storages);
  EXPECT_TRUE(at::equal(dense, waves().conj()));
}

TEST(SnapshotTensors, ALazyTargetIsFilledWithWhatTheFileSays) {
  const at::Tensor target = at::zeros({2}, at::kComplexFloat).conj();
  fill(target, {"z", "complex64", 2, 0, {2}, {1}, false}, HeldStorages({{"z", waves()}}));
  EXPECT_TRUE(at::equal(target, waves()));
}

}  // namespace
}  // namespace cpprun::snapshot

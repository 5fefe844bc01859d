// Tensors on their way to a file and back, and tensors that only Python writes.
#include "cpprun/snapshot/state/tensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "snapshot_files/pickle/pickle.hpp"
#include "tests/sdk/snapshot/held_storages.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::TensorRef;
using test::HeldStorages;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The tensor that a file would return.
at::Tensor kept(const at::Tensor& tensor) {
  Capture capture;
  const TensorRef ref = *pickle::read(pickle::write(capture.add(tensor)))->get_if<TensorRef>();
  return make_tensor(ref, HeldStorages(capture.take_storages()));
}

at::Tensor waves() { return at::complex(at::tensor({1.F, 3.F}), at::tensor({2.F, -4.F})); }

// torch.imag(z.conj()) is a negative view of z's storage.
TEST(SnapshotTensors, SavesLazyNegativesAndConjugatesByValue) {
  const HeldStorages storages({{"z", waves()}});
  const TensorRef negative{"z", "float32", 4, 1, {2}, {2}, false, false, true};
  const TensorRef conjugate{"z", "complex64", 2, 0, {2}, {1}, false, true};
  EXPECT_TRUE(at::equal(make_tensor(negative, storages), at::tensor({-2.F, 4.F})));
  EXPECT_TRUE(at::equal(make_tensor(conjugate, storages), waves().conj()));
  const at::Tensor dense = at::zeros({2}, at::kComplexFloat);
  fill(dense, conjugate, storages);
  EXPECT_TRUE(at::equal(dense, waves().conj()));
}

TEST(SnapshotTensors, FillsALazyTargetFromTheFile) {
  const at::Tensor target = at::zeros({2}, at::kComplexFloat).conj();
  fill(target, {"z", "complex64", 2, 0, {2}, {1}, false}, HeldStorages({{"z", waves()}}));
  EXPECT_TRUE(at::equal(target, waves()));
}

TEST(SnapshotTensors, RestoresComplexHalfTensors) {
  const at::Tensor halves = at::arange(8, at::kHalf).view({4, 2});
  const at::Tensor found = kept(at::view_as_complex(halves));
  ASSERT_EQ(found.scalar_type(), at::kComplexHalf);
  EXPECT_TRUE(at::equal(at::view_as_real(found), halves));
}

TEST(SnapshotTensors, RejectsUnsupportedDtypesByName) {
  const at::Tensor bits = at::zeros({2, 3}, at::kByte).view(at::kBits8);
  EXPECT_THAT([&] { Capture().add(bits); },
              ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("bits8"), HasSubstr("[2, 3]"))));
}

TEST(SnapshotTensors, ReplacesAnExpandedTensorAndKeepsItsSource) {
  const at::Tensor source = at::zeros({1, 3});
  at::Tensor value = source.expand({4, 3});
  assign(value, {"row", "float32", 3, 0, {4, 3}, {0, 1}, false},
         HeldStorages({{"row", at::ones({3})}}));
  EXPECT_TRUE(at::equal(value, at::ones({4, 3})));
  EXPECT_TRUE(at::equal(source, at::zeros({1, 3})));
}

}  // namespace
}  // namespace cpprun::snapshot

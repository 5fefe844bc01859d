// The current device follows the local rank. No GPU is needed: c10's own fake guard implementation
// stands in for one.
#include <gtest/gtest.h>

#include <c10/core/impl/FakeGuardImpl.h>

#include "cpprun/dist/backend/backend_map.hpp"
#include "cpprun/dist/group/group_state.hpp"

namespace cpprun::dist {
namespace {

using c10::Device;
using c10::DeviceType;
using Fake = c10::impl::FakeGuardImpl<DeviceType::PrivateUse1>;
C10_REGISTER_GUARD_IMPL(PrivateUse1, Fake);

TEST(LocalDevice, IsTheLocalRanksDeviceForNccl) {
  EXPECT_EQ(own_device("nccl", std::nullopt, 3), Device(DeviceType::CUDA, 3));
  EXPECT_EQ(own_device("cpu:gloo,cuda:nccl", std::nullopt, 1), Device(DeviceType::CUDA, 1));
  EXPECT_EQ(own_device("gloo", std::nullopt, 1), std::nullopt);
}

TEST(LocalDevice, IsTheDeviceOfTheProgram) {
  const Device named(DeviceType::CUDA, 5);
  EXPECT_EQ(own_device("nccl", named, 1), named);
  EXPECT_EQ(own_device("nccl", Device(DeviceType::CUDA), 1), Device(DeviceType::CUDA, 1));
}

TEST(LocalDevice, IsTheOnlyOneThatIsVisible) {
  const Device third(DeviceType::CUDA, 3);
  EXPECT_EQ(visible_device(third, 8), third);
  EXPECT_EQ(visible_device(third, 1), Device(DeviceType::CUDA, 0));
  EXPECT_EQ(visible_device(third, 0), third);  // its use is refused later
  EXPECT_EQ(device_count(DeviceType::XPU), 0);
}

// Snapshot, Trainer and object collectives ask local_device().
TEST(LocalDevice, OfTheGroupIsTheOneThatInitGot) {
  const Device named(DeviceType::CUDA, 5);
  const auto group = init_process_group({.backend = "gloo",
                                         .world_size = 1,
                                         .rank = 0,
                                         .store = make_hash_store(),
                                         .device_id = named});
  EXPECT_EQ(local_device(), named);
  EXPECT_EQ(new_group({0}).state()->device, named);
}

TEST(LocalDevice, BecomesTheCurrentDevice) {
  Fake::setDeviceIndex(0);
  EXPECT_TRUE(use_device(Device(DeviceType::PrivateUse1, 2)));
  EXPECT_EQ(Fake::getDeviceIndex(), 2);
}

TEST(LocalDevice, StaysUnchangedWithFewerDevices) {
  Fake::setDeviceIndex(1);
  EXPECT_FALSE(use_device(Device(DeviceType::PrivateUse1, c10::impl::kFakeGuardImplMaxDevices)));
  EXPECT_FALSE(use_device(Device(DeviceType::XPU, 0)));  // no fake is registered
  EXPECT_EQ(Fake::getDeviceIndex(), 1);
}

}  // namespace
}  // namespace cpprun::dist

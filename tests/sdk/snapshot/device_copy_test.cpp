// The order of staging from a device, with a fake device: a started copy happens only when a caller
// waits for a later event.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "cpprun/snapshot/save/device_copy.hpp"

namespace cpprun::snapshot {
namespace {

using testing::ElementsAre;

constexpr c10::StreamId kCompute = 0, kSide = 7;

// The contents of the fake device's streams and the calls made to it. One for all, as a device is.
struct Fake {
  std::vector<std::string> log;
  std::vector<std::function<void()>> started;  // copies that have not happened
  std::map<void*, size_t> events;              // the number of started copies before each event
  c10::StreamId current = kCompute;
  size_t happened = 0;
} fake;

c10::Device device() { return {c10::DeviceType::PrivateUse1, 0}; }

std::string name(const c10::Stream& stream) { return stream.id() == kSide ? "side" : "compute"; }

struct FakeGuard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1> {
  c10::Device getDevice() const override { return device(); }
  c10::Device exchangeDevice(c10::Device) const override { return device(); }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(fake.current); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(kSide); }
  c10::Stream exchangeStream(c10::Stream to) const noexcept override {
    return stream(std::exchange(fake.current, to.id()));
  }
  void record(void** event, const c10::Stream& on, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new int;
    fake.events[*event] = fake.happened + fake.started.size();
    fake.log.push_back("record " + name(on));
  }
  void block(void*, const c10::Stream& who) const override {
    fake.log.push_back("block " + name(who));
  }
  void synchronizeEvent(void* event) const override {
    for (; fake.happened < fake.events[event]; ++fake.happened) {
      fake.started.front()();
      fake.started.erase(fake.started.begin());
    }
    fake.log.emplace_back("wait");
  }
  bool queryEvent(void*) const override { return false; }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<int*>(event);
  }
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, device(), id);
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, FakeGuard);

DeviceCopyCalls fake_calls() {
  return {
      .make_pinned = [](int64_t bytes) { return at::zeros({bytes}, at::kByte); },
      .start =
          [](const at::Tensor& into, const at::Tensor& from) {
            fake.log.push_back(std::string("copy in ") + name(FakeGuard::stream(fake.current)));
            fake.started.emplace_back([into, from] { into.copy_(from); });
          },
  };
}

class DeviceCopyTest : public ::testing::Test {
 protected:
  void SetUp() override { fake = Fake(); }
};

TEST_F(DeviceCopyTest, CopiesAfterPendingDeviceWork) {
  DeviceCopy copy(device(), fake_calls());
  EXPECT_THAT(fake.log, ElementsAre("record compute", "block side"));
  const at::Tensor bytes = at::full({10}, 3, at::kByte);
  std::vector<std::byte> memory(10);
  copy.add(bytes, memory.data());
  EXPECT_EQ(fake.current, kCompute) << "training's stream is the current one again";
  copy.finish();
  EXPECT_THAT(fake.log,
              ElementsAre("record compute", "block side", "copy in side", "record side", "wait"));
  EXPECT_EQ(memory, std::vector<std::byte>(10, std::byte{3}));
}

TEST_F(DeviceCopyTest, ReusesABufferAfterItsBytesAreWritten) {
  const int64_t size = 4 * DeviceCopy::kPiece + 105;
  const at::Tensor bytes = at::arange(size, at::kLong).remainder(251).to(at::kByte);
  std::vector<std::byte> memory(static_cast<size_t>(size));
  DeviceCopy copy(device(), fake_calls());
  copy.add(bytes.narrow(0, 0, 100), memory.data());
  copy.add(bytes.narrow(0, 100, size - 100), memory.data() + 100);
  copy.finish();
  EXPECT_TRUE(fake.started.empty());
  EXPECT_EQ(std::memcmp(memory.data(), bytes.const_data_ptr(), memory.size()), 0);
  const auto waits = std::count(fake.log.begin(), fake.log.end(), "wait");
  EXPECT_EQ(waits, 6) << "one for each piece";
  EXPECT_LT(std::find(fake.log.begin(), fake.log.end(), "wait") - fake.log.begin(), 7)
      << "two are on their way at once, no more";
}

TEST_F(DeviceCopyTest, ThrowsWithoutPinnedMemory) {
  DeviceCopyCalls calls = fake_calls();
  calls.make_pinned = [](int64_t) -> at::Tensor { TORCH_CHECK(false, "none"); };
  EXPECT_THROW(DeviceCopy(device(), calls), c10::Error);
}

TEST_F(DeviceCopyTest, CopiesWithoutPinnedMemory) {
  const at::Tensor bytes = at::full({10}, 4, at::kByte);  // on the CPU, which has no streams
  std::vector<std::byte> memory(10);
  DeviceCopies copies;
  copies.add(bytes, memory.data());
  copies.finish();
  EXPECT_EQ(memory, std::vector<std::byte>(10, std::byte{4}));
}

}  // namespace
}  // namespace cpprun::snapshot

// Groups in a world of one process: guarantees of new_group and the handles without another rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "cpprun/dist/native.hpp"
#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

InitOptions solo() {
  InitOptions options;
  options.store = make_hash_store();
  options.backend = "gloo";
  options.rank = 0;
  options.world_size = 1;
  options.timeout = std::chrono::seconds(20);
  return options;
}

long sum(const ProcessGroup& group) {
  std::vector<at::Tensor> tensors{torch::ones({1}, torch::kInt64)};
  native(group)->allreduce(tensors)->wait();
  return static_cast<long>(tensors[0].item<int64_t>());
}

TEST(SubGroups, HaveNamesRanksAndTimeouts) {
  const auto world = init_process_group(solo());
  InitOptions options;
  options.timeout = std::chrono::seconds(7);
  const ProcessGroup first = new_group({0}, options);
  const ProcessGroup second = new_group({});
  EXPECT_EQ(default_group().name(), "0");
  EXPECT_EQ(first.name(), "1");
  EXPECT_EQ(second.name(), "2");
  EXPECT_EQ(first.timeout(), std::chrono::seconds(7));
  EXPECT_EQ(first.ranks(), std::vector<int>{0});
  EXPECT_EQ(first.backend(), "gloo");
  EXPECT_EQ(get_group_rank(first, 0), 0);
  EXPECT_EQ(get_global_rank(first, 0), 0);
  EXPECT_EQ(sum(first), 1);
}

TEST(SubGroups, StoresAreSeparate) {
  const auto world = init_process_group(solo());
  const ProcessGroup first = new_group({0}), second = new_group({0});
  first.store().set("key", "one");
  second.store().set("key", "two");
  EXPECT_EQ(first.store().get("key"), "one");
  EXPECT_FALSE(default_group().store().check({"key"}));
}

TEST(SubGroups, NamesWrongRanks) {
  const auto world = init_process_group(solo());
  EXPECT_THAT(
      [] {
        new_group({0, 1});
      },
      ThrowsMessage<DistArgumentError>(HasSubstr("rank 1 does not exist")));
  EXPECT_THAT([] { new_group({0, 0}); }, ThrowsMessage<DistArgumentError>(HasSubstr("twice")));
  EXPECT_THAT([] { get_group_rank({}, 5); },
              ThrowsMessage<DistArgumentError>(HasSubstr("global rank 5")));
  EXPECT_THAT([] { get_global_rank({}, -1); },
              ThrowsMessage<DistArgumentError>(HasSubstr("no rank -1")));
}

// LOCAL_WORLD_SIZE, for one test.
class LocalWorldSize {
 public:
  explicit LocalWorldSize(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    ::setenv(kName, value, 1);
  }
  ~LocalWorldSize() {
    if (before_) {
      ::setenv(kName, before_->c_str(), 1);
    } else {
      ::unsetenv(kName);
    }
  }
  LocalWorldSize(const LocalWorldSize&) = delete;
  LocalWorldSize& operator=(const LocalWorldSize&) = delete;

 private:
  static constexpr const char* kName = "LOCAL_WORLD_SIZE";
  std::optional<std::string> before_;
};

TEST(SubGroups, HaveTheSizeOfTheNodeByDefault) {
  const auto world = init_process_group(solo());
  for (const char* value : {"1", ""}) {
    const LocalWorldSize given(value);
    EXPECT_EQ(new_subgroups().all.size(), 1U) << value;
  }
  const LocalWorldSize too_many("2");
  EXPECT_THAT([] { new_subgroups(); },
              ThrowsMessage<DistArgumentError>(HasSubstr("group_size, which is 2")));
}

TEST(SubGroups, NameAWrongSizeOfTheNode) {
  const auto world = init_process_group(solo());
  for (const char* value : {"one", "1x", "-1"}) {
    const LocalWorldSize given(value);
    EXPECT_THAT([] { new_subgroups(); },
                ThrowsMessage<DistArgumentError>(
                    HasSubstr("LOCAL_WORLD_SIZE is '" + std::string(value) + "', which is no")));
  }
}

TEST(SubGroups, EndWithTheWorld) {
  ProcessGroup group;
  {
    const auto world = init_process_group(solo());
    group = new_group({0});
  }
  EXPECT_THAT([&] { native(group); }, ThrowsMessage<DistStateError>(HasSubstr("was destroyed")));
  EXPECT_FALSE(is_initialized());
}

TEST(SubGroups, EndBeforeTheWorld) {
  const auto world = init_process_group(solo());
  const ProcessGroup group = new_group({0});
  destroy_process_group(group);
  destroy_process_group(group);
  EXPECT_THROW(sum(group), DistStateError);
  EXPECT_EQ(sum({}), 1);
}

TEST(SubGroups, NeedAWorld) {
  EXPECT_THAT([] { new_group({0}); },
              ThrowsMessage<DistStateError>(HasSubstr("call init_process_group() first")));
}

TEST(ProcessGroupGuardTest, MovesAndEndsOnce) {
  ProcessGroupGuard outer;
  {
    auto inner = init_process_group(solo());
    outer = std::move(inner);
  }
  EXPECT_TRUE(is_initialized());
  outer = ProcessGroupGuard();
  EXPECT_FALSE(is_initialized());
}

TEST(ProcessGroupGuardTest, LeavesALaterGroupOpen) {
  const auto first = std::make_unique<ProcessGroupGuard>(init_process_group(solo()));
  destroy_process_group();
  const auto second = init_process_group(solo());
  *first = ProcessGroupGuard();
  EXPECT_TRUE(is_initialized());
}

TEST(Capabilities, Gloo) {
  const Capabilities can = capabilities("gloo");
  EXPECT_TRUE(can.has_cpu && can.has_cuda);
  EXPECT_TRUE(can.calls.contains("monitored_barrier"));
  EXPECT_TRUE(can.emulated_reduce_ops.contains("AVG"));
  EXPECT_FALSE(can.reduce_ops.contains("PREMUL_SUM"));
  EXPECT_THROW(capabilities("mpi"), DistArgumentError);
}

}  // namespace
}  // namespace cpprun::dist

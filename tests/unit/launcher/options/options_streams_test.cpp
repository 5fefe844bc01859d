// Specs of --redirects and --tee, line filters, and the counting of GPUs.
#include "launcher/options/gpus.hpp"
#include "launcher/options/logs.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

std::string bits(std::string_view text, int nproc) {
  std::optional<StreamSpec> spec = parse_stream_spec(text, nproc);
  if (!spec) return "bad";
  std::string out;
  for (StreamBits b : spec->by_rank) out += static_cast<char>('0' + b.bits);
  return out;
}

TEST(OptionsStreams, OneDigitAppliesToAll) {
  EXPECT_EQ(bits("0", 3), "000");
  EXPECT_EQ(bits("3", 3), "333");
}

TEST(OptionsStreams, AMappingIsByLocalRank) {
  EXPECT_EQ(bits("0:1,1:2", 3), "120");
  EXPECT_EQ(bits("10:1,11:3", 12), "000000000013");
  EXPECT_EQ(bits("0:1,0:2", 1), "2");
  EXPECT_EQ(bits("7:1", 2), "00");
  EXPECT_EQ(parse_stream_spec("7:1,0:1", 2)->highest_rank, 7);
  EXPECT_EQ(parse_stream_spec("3", 2)->highest_rank, -1);
}

TEST(OptionsStreams, RejectsAnythingElse) {
  for (const char* text : {"", "4", "33", " 1", "0:", ":1", "0:4", "a:1", "0:1,", ",0:1", "0:1;1:1",
                           "0:1:1", "+1:1", "-1:1"}) {
    EXPECT_EQ(bits(text, 2), "bad") << text;
  }
  EXPECT_EQ(bits("99999999999999999999:1", 2), "bad");
  EXPECT_EQ(bits("99999999999:1", 2), "00");
}

TEST(OptionsStreams, WarnsOfMissingRanks) {
  Strings warnings =
      launch_of(line({"--tee=5:1", "-r3", "--local-ranks-filter=0,9", "--nproc=2"})).warnings;
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0], "--tee=5:1 names local rank 5, but the highest here is 1");
  EXPECT_TRUE(holds(warnings[1], "names local rank 9"));
}

TEST(OptionsStreams, LineFilters) {
  EXPECT_EQ(parse_line_filters("apple,pear"), (Strings{"apple", "pear"}));
  EXPECT_EQ(parse_line_filters("a,,b,c"), (Strings{"a,b", "c"}));
  EXPECT_EQ(parse_line_filters(""), Strings{});
  EXPECT_EQ(parse_line_filters(",a,"), (Strings{"a"}));
  EXPECT_EQ(parse_line_filters(",,,"), (Strings{","}));
}

TEST(OptionsGpus, CountsGpusByDriverAndDeviceFiles) {
  EXPECT_EQ(count_gpus({}), 0);
  EXPECT_EQ(count_gpus({8, 8, true}), 8);
  EXPECT_EQ(count_gpus({8, 1, false}), 1);  // a container with one of eight
  EXPECT_EQ(count_gpus({8, 0, false}), 0);  // a container without any
  EXPECT_EQ(count_gpus({8, 0, true}), 8);   // device files appear at first use
  EXPECT_EQ(count_gpus({0, 2, false}), 2);
}

TEST(OptionsGpus, ReadsVisibleDevicesAsCudaDoes) {
  auto visible = [](const char* list) { return visible_gpus(4, std::string(list)).count; };
  EXPECT_EQ(visible_gpus(4, std::nullopt).count, 4);
  EXPECT_EQ(visible("2,3"), 2);
  EXPECT_EQ(visible(" 0 , 1"), 2);
  EXPECT_EQ(visible("0,1,7,2"), 2);
  EXPECT_EQ(visible("-1"), 0);
  EXPECT_EQ(visible("0,-1,1"), 1);
  EXPECT_EQ(visible("1,1"), 0);
  EXPECT_EQ(visible(""), 0);
  EXPECT_EQ(visible("all"), 0);
  EXPECT_EQ(visible("GPU-aa,GPU-bb"), 2);
  EXPECT_EQ(visible("GPU-aa,GPU-aa"), 0);
  EXPECT_EQ(visible("MIG-aa,MIG-bb"), 1);
  EXPECT_EQ(visible_gpus(4, std::string("")).why_none, "CUDA_VISIBLE_DEVICES is empty");
  EXPECT_TRUE(
      holds(visible_gpus(4, std::string("9")).why_none, "names none of this machine's 4 GPUs"));
}

TEST(OptionsGpus, TestsMayOverrideTheCount) {
  EXPECT_EQ(probe_gpus("4", std::nullopt).count, 4);
  EXPECT_EQ(probe_gpus("4", "2,3").count, 2);
  EXPECT_EQ(probe_gpus("0", std::nullopt).count, 0);
  EXPECT_EQ(probe_gpus("x", std::nullopt).count, 0);
}

}  // namespace
}  // namespace cpprun::test

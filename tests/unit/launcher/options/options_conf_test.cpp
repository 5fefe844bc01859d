// --rdzv-conf: form, values, and warnings about unknown keys.
#include "common/limits/rendezvous.hpp"
#include "launcher/options/rdzv_conf.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

Result<RendezvousConf> conf_of(std::string_view text, Backend backend, Strings& warnings) {
  Result<KeyValues> values = split_rdzv_conf(text);
  if (!values) return values.error();
  return read_rdzv_conf(*values, backend, warnings);
}

RendezvousConf read(std::string_view text, bool is_static = false) {
  Strings warnings;
  const Backend backend = is_static ? Backend::Static : Backend::Cpprun;
  Result<RendezvousConf> conf = conf_of(text, backend, warnings);
  EXPECT_TRUE(conf.ok()) << (conf.ok() ? "" : conf.error().text);
  EXPECT_TRUE(warnings.empty()) << warnings.front();
  return conf.ok() ? *conf : RendezvousConf{};
}

std::string error(std::string_view text) {
  Strings warnings;
  Result<RendezvousConf> conf = conf_of(text, Backend::Cpprun, warnings);
  EXPECT_FALSE(conf.ok()) << text;
  if (conf.ok()) return "";
  EXPECT_EQ(exit_code(conf.error()), 1);
  return conf.error().text;
}

TEST(OptionsConf, DefaultsDependOnTheBackend) {
  EXPECT_EQ(read("").join_timeout, limits::kJoinTimeout);
  EXPECT_EQ(read("", true).join_timeout, limits::kStaticTimeout);
  EXPECT_FALSE(read("").last_call.has_value());
  EXPECT_EQ(read("  ").lease, limits::kNodeLease);
  EXPECT_EQ(read("").heartbeat, limits::kHeartbeat);
}

TEST(OptionsConf, ParsesTimesAndTheLastOneWins) {
  RendezvousConf conf =
      read("join_timeout=15, last_call_timeout = 1 ,scale_up_interval=0,join_timeout=2.5");
  EXPECT_EQ(conf.join_timeout, seconds(2.5));
  EXPECT_EQ(conf.last_call, seconds(1));
  EXPECT_EQ(conf.scale_up_interval, seconds(0));
}

TEST(OptionsConf, TimeoutIsForStatic) {
  EXPECT_EQ(read("timeout=5").join_timeout, limits::kJoinTimeout);
  EXPECT_EQ(read("timeout=5", true).join_timeout, seconds(5));
  EXPECT_EQ(read("join_timeout=7,timeout=5", true).join_timeout, seconds(5));
}

TEST(OptionsConf, AcceptsQuotes) {
  for (const char* text :
       {"'join_timeout=15,last_call_timeout=1'", "\"join_timeout=15,last_call_timeout=1\"",
        "join_timeout='15',last_call_timeout=\"1\"", " 'join_timeout=15,last_call_timeout=1"}) {
    RendezvousConf conf = read(text);
    EXPECT_EQ(conf.join_timeout, seconds(15)) << text;
    EXPECT_EQ(conf.last_call, seconds(1)) << text;
  }
}

TEST(OptionsConf, LeaseIsIntervalTimesAttempts) {
  EXPECT_EQ(read("keep_alive_interval=1,keep_alive_max_attempt=3").lease, seconds(3));
  EXPECT_EQ(read("keep_alive_interval=2").lease, seconds(6));
  EXPECT_EQ(read("keep_alive_interval=2").heartbeat, seconds(2));
  EXPECT_EQ(read("keep_alive_max_attempt=4").lease, seconds(20));
  // Fewer than three pings in a lease would lose a node to one late ping.
  EXPECT_EQ(read("keep_alive_interval=6,keep_alive_max_attempt=1").heartbeat, seconds(2));
  EXPECT_TRUE(holds(error("keep_alive_interval=0.1,keep_alive_max_attempt=3"), "below 1 s"));
  EXPECT_TRUE(holds(error("keep_alive_max_attempt=0"), "keep_alive_max_attempt=0"));
  EXPECT_TRUE(holds(error("keep_alive_max_attempt=2.5"), "whole number"));
  EXPECT_TRUE(holds(error("keep_alive_interval=1e8,keep_alive_max_attempt=1000"), "over 1e8"));
}

TEST(OptionsConf, OtherKeys) {
  EXPECT_EQ(read("is_host=1").is_host, true);
  EXPECT_EQ(read("is_host=No").is_host, false);
  EXPECT_FALSE(read("").is_host.has_value());
  EXPECT_EQ(read("store_value_limit_mb=8").store_value_bytes, size_t{8} << 20);
  EXPECT_EQ(read("store_memory_mb=4096").store_memory_bytes, size_t{4096} << 20);
  EXPECT_FALSE(read("").store_memory_bytes.has_value());
  read(
      "store_type=tcp,read_timeout=3,close_timeout=30,heartbeat_timeout=5,cas_backoff_max_seconds="
      "0");
}

TEST(OptionsConf, NamesInvalidValues) {
  EXPECT_TRUE(holds(error("join_timeout"), "join_timeout has no value"));
  EXPECT_TRUE(holds(error("join_timeout="), "join_timeout has no value"));
  EXPECT_TRUE(holds(error("=5"), "a key is missing"));
  EXPECT_TRUE(holds(error("join_timeout=5,"), "a key is missing"));
  EXPECT_TRUE(holds(error("join_timeout=soon"), "join_timeout=soon: not a number"));
  EXPECT_TRUE(holds(error("join_timeout=0"), "above 0"));
  EXPECT_TRUE(holds(error("last_call_timeout=-1"), "last_call_timeout=-1"));
  EXPECT_TRUE(holds(error("read_timeout=0"), "read_timeout=0"));
  EXPECT_TRUE(holds(error("join_timeout=1e300"), "join_timeout=1e300"));
  EXPECT_TRUE(holds(error("join_timeout=nan"), "not a number"));
  EXPECT_TRUE(holds(error("cas_backoff_max_seconds=-1"), "0 or more"));
  EXPECT_TRUE(holds(error("is_host=maybe"), "true or false"));
  EXPECT_TRUE(holds(error("store_value_limit_mb=0"), "from 1 to 2048"));
  EXPECT_TRUE(holds(error("store_memory_mb=0"), "from 1 to 16777216"));
}

TEST(OptionsConf, ChecksTheStoreTypeBeforeTheEndpoint) {
  const auto error_with = [](const std::string& conf) {
    return error_of(line({"--rdzv-backend=c10d", "--rdzv-endpoint=/tmp/store", conf})).text;
  };
  const std::string file = error_with("--rdzv-conf=store_type=file");
  EXPECT_TRUE(holds(file, "store_type=file: a shared file can't show when a node is gone")) << file;
  EXPECT_TRUE(holds(error_with("--rdzv-conf=store_type=x"), "only tcp"));
  EXPECT_TRUE(holds(error_with("--rdzv-conf=store_type=tcp"), "/tmp/store' is no endpoint"));
}

TEST(OptionsConf, IgnoresUnknownKeysWithAWarning) {
  Strings warnings;
  EXPECT_TRUE(
      conf_of("no_such_key=1,jointimeout=5,jointimeout=6,protocol=http", Backend::Cpprun, warnings)
          .ok());
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0], "--rdzv-conf: unknown key no_such_key is ignored");
  EXPECT_EQ(warnings[1],
            "--rdzv-conf: unknown key jointimeout is ignored\nhint: did you mean join_timeout?");
  EXPECT_EQ(warnings[2], "--rdzv-conf: protocol is for etcd and has no effect here");
}

}  // namespace
}  // namespace cpprun::test

// --rdzv-backend=etcd: members, keys, TLS, user.
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

RendezvousConfig etcd_rendezvous(Strings more, const Machine& machine = {}) {
  more.insert(more.begin(), "--rdzv-backend=etcd");
  return config_of(line(more), machine).rendezvous;
}

// Its error text; the exit code is that of a bad value.
std::string message_of(Strings more, const Machine& machine = {}) {
  more.insert(more.begin(), "--rdzv-backend=etcd");
  Result<OptionsResult> options_result = ask(line(more), machine);
  EXPECT_FALSE(options_result.ok());
  if (options_result.ok()) return "";
  EXPECT_EQ(exit_code(options_result.error()), 1);
  return options_result.error().text;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Machine with_files() {
  Machine machine;
  for (const char* name : {"ca.pem", "me.pem", "me.key"}) {
    machine.files[name] = {FileKind::Other, false};
  }
  return machine;
}

TEST(OptionsEtcd, UsesEveryNamedMember) {
  const RendezvousConfig config =
      etcd_rendezvous({"--nnodes=2:3", "--rdzv-id=j", "--rdzv-endpoint=h1, h2:23,[::1]:24"});
  EXPECT_EQ(config.backend, Backend::Etcd);
  EXPECT_EQ(config.etcd.endpoints, (std::vector<Endpoint>{{"h1", 2379}, {"h2", 23}, {"::1", 24}}));
  EXPECT_EQ(config.endpoint, (Endpoint{"h1", 2379}));
  EXPECT_FALSE(config.is_standalone);
  EXPECT_EQ(config.worker_store, WorkerStore::Rank0);
  EXPECT_EQ(config.etcd.prefix, "");
  EXPECT_TRUE(config.etcd.user.empty());
}

TEST(OptionsEtcd, AcceptsTorchrunsNameAndReportsIt) {
  const Launch launch = launch_of(line({"--rdzv-backend=etcd-v2", "--rdzv-endpoint=h"}));
  EXPECT_EQ(launch.config.rendezvous.backend, Backend::Etcd);
  ASSERT_EQ(launch.warnings.size(), 1u);
  EXPECT_TRUE(holds(launch.warnings[0], "v3"));
}

TEST(OptionsEtcd, ReportsOptionsOfOtherBackends) {
  const Launch launch =
      launch_of(line({"--rdzv-backend=etcd", "--rdzv-endpoint=h", "--master-port=1",
                      "--rdzv-conf=is_host=1,etcd_prefix=/a"}));
  ASSERT_EQ(launch.warnings.size(), 2u);
  EXPECT_TRUE(holds(launch.warnings[0], "ignored with etcd"));
  EXPECT_TRUE(holds(launch.warnings[1], "is_host has no effect"));
  EXPECT_EQ(launch.config.rendezvous.etcd.prefix, "/a/");
}

TEST(OptionsEtcd, RejectsInvalidMembers) {
  EXPECT_TRUE(holds(message_of({}), "needs --rdzv-endpoint"));
  EXPECT_TRUE(holds(message_of({"--rdzv-endpoint=a,,b"}), "has no name"));
  EXPECT_TRUE(holds(message_of({"--rdzv-endpoint=a,https://b:1"}), "protocol=https"));
  EXPECT_TRUE(holds(message_of({"--rdzv-endpoint=a:0"}), "port 0"));
  std::string many = "--rdzv-endpoint=a";
  for (int i = 0; i < 16; ++i) many += ",a";
  EXPECT_TRUE(holds(message_of({many}), "at most 16"));
}

TEST(OptionsEtcd, AcceptsTheNamesOfBothTorchrunBackends) {
  for (const char* conf : {"protocol=https,cacert=ca.pem,cert=me.pem,key=me.key",
                           "protocol=https,ca_cert=ca.pem,ssl_cert=me.pem,ssl_cert_key=me.key"}) {
    const EtcdConfig etcd =
        etcd_rendezvous({"--rdzv-endpoint=h", std::string("--rdzv-conf=") + conf}, with_files())
            .etcd;
    EXPECT_TRUE(etcd.is_https);
    EXPECT_EQ(etcd.ca_file, "ca.pem");
    EXPECT_EQ(etcd.cert_file, "me.pem");
    EXPECT_EQ(etcd.key_file, "me.key");
  }
}

TEST(OptionsEtcd, RejectsInvalidKeysAndFiles) {
  const auto error = [](const std::string& conf) {
    return message_of({"--rdzv-endpoint=h", "--rdzv-conf=" + conf}, with_files());
  };
  EXPECT_TRUE(holds(error("protocol=gopher"), "http or https"));
  EXPECT_TRUE(holds(error("cacert=ca.pem"), "add protocol=https"));
  EXPECT_TRUE(holds(error("protocol=https,cacert=nowhere.pem"), "no such file"));
  EXPECT_TRUE(holds(error("protocol=https,cert=me.pem"), "belong together"));
  EXPECT_TRUE(holds(error("etcd_prefix=team"), "such as /team"));
  EXPECT_TRUE(holds(error("etcd_prefix=/"), "such as /team"));
}

TEST(OptionsEtcd, RejectsAPasswordOnTheCommandLine) {
  EXPECT_TRUE(holds(message_of({"--rdzv-endpoint=h", "--rdzv-conf=user=u,password=secret"}),
                    "CPPRUN_ETCD_PASSWORD"));
  EXPECT_FALSE(
      holds(message_of({"--rdzv-endpoint=h", "--rdzv-conf=user=u,password=secret"}), "secret"));
  EXPECT_TRUE(
      holds(message_of({"--rdzv-endpoint=h", "--rdzv-conf=user=u"}), "CPPRUN_ETCD_PASSWORD"));
  const EtcdConfig etcd = etcd_rendezvous({"--rdzv-endpoint=h", "--rdzv-conf=user=u"},
                                          Machine{}.with({"CPPRUN_ETCD_PASSWORD=secret"}))
                              .etcd;
  EXPECT_EQ(etcd.user, "u");
  EXPECT_EQ(etcd.password, "secret");
}

}  // namespace
}  // namespace cpprun::test

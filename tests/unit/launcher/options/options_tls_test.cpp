// The job's secret and certificates, as options and variables.
#include <gmock/gmock.h>

#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

using testing::HasSubstr;

std::string tls_error(const Strings& args, const Machine& machine = {}) {
  const Result<OptionsResult> got = ask(line(args), machine);
  return got ? "" : got.error().text;
}

size_t secret_bytes(const AgentConfig& config) {
  const auto& secret = config.rendezvous.tls.secret;
  return secret ? secret->bytes().size() : 0;
}

TEST(OptionsTls, WithoutAnyConnectionsArePlain) {
  const AgentConfig config = config_of(line({}));
  EXPECT_EQ(config.rendezvous.tls.secret, nullptr);
  EXPECT_TRUE(config.rendezvous.tls.cert_file.empty());
}

TEST(OptionsTls, VariableNamesTheFile) {
  const Machine machine = Machine{}.with({"CPPRUN_SECRET_FILE=secret"});
  EXPECT_EQ(secret_bytes(config_of(line({}), machine)), 16u);
  EXPECT_EQ(secret_bytes(config_of(line({}), Machine{}.with({"CPPRUN_SECRET_FILE="}))), 0u);
}

TEST(OptionsTls, BadSecretsAreRefused) {
  EXPECT_THAT(tls_error({"--secret-file=short"}), HasSubstr("has 15 bytes"));
  EXPECT_THAT(tls_error({"--secret-file=short"}), HasSubstr("openssl rand -hex 32"));
  EXPECT_THAT(tls_error({"--secret-file=none"}), HasSubstr("not there"));
  const Machine machine = Machine{}.with({"CPPRUN_SECRET_FILE=short"});
  EXPECT_THAT(tls_error({}, machine), HasSubstr("has 15 bytes"));
  EXPECT_EQ(tls_error({"--secret-file=secret"}, machine), "");
}

TEST(OptionsTls, CertificatesBelongTogether) {
  EXPECT_THAT(tls_error({"--tls-cert=own.pem"}), HasSubstr("belong together"));
  EXPECT_THAT(tls_error({"--tls-ca=ca.pem"}), HasSubstr("belong together"));
  const Strings all{"--tls-cert=own.pem", "--tls-key=own.key", "--tls-ca=ca.pem"};
  EXPECT_EQ(tls_error(all), "");
  Strings both = all;
  both.push_back("--secret-file=secret");
  EXPECT_THAT(tls_error(both), HasSubstr("two ways for the same"));
  EXPECT_THAT(tls_error({"--tls-cert=gone.pem", "--tls-key=own.key", "--tls-ca=ca.pem"}),
              HasSubstr("there is no such file"));
}

// A cluster may set the variable for all users; the certificates that a user names go before it.
TEST(OptionsTls, CertificatesWinOverTheVariables) {
  const Machine machine = Machine{}.with({"CPPRUN_SECRET_FILE=short"});
  const AgentConfig config =
      config_of(line({"--tls-cert=own.pem", "--tls-key=own.key", "--tls-ca=ca.pem"}), machine);
  EXPECT_EQ(config.rendezvous.tls.secret, nullptr);
  EXPECT_EQ(config.rendezvous.tls.cert_file, "own.pem");
}

}  // namespace
}  // namespace cpprun::test

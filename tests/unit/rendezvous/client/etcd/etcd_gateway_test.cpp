// Requests to etcd and its answers, in the JSON of its gateway; and invalid answers.
#include "rendezvous/client/etcd/gateway.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cpprun::etcd {
namespace {

using nlohmann::json;

const election::Read kRead{"l", "f"};
const election::Grant kGrant{5};
const election::KeepAlive kKeepAlive{12};

json body_as_json(const election::Request& request) {
  return json::parse(request_of(request, "/p/").body);
}

std::string path_of(const election::Request& request) { return request_of(request, "/p/").path; }

election::Response response_to(const election::Request& request, const std::string& body) {
  return response_of(request, "/p/", body);
}

bool has_failed(const election::Request& request, const std::string& body) {
  return std::holds_alternative<election::Failed>(response_to(request, body));
}

TEST(EtcdGateway, ACampaignGuardsTheKeyAndReadsIt) {
  const election::Campaign campaign{"l", std::string("\0v", 2), "f", 9};
  EXPECT_EQ(path_of(campaign), "/v3/kv/txn");
  EXPECT_EQ(body_as_json(campaign), json::parse(R"({
    "compare": [{"key": "L3AvbA==", "target": "CREATE", "result": "EQUAL", "createRevision": "0"}],
    "success": [
      {"requestPut": {"key": "L3AvbA==", "value": "AHY=", "lease": "9"}},
      {"requestRange": {"key": "L3AvbA=="}},
      {"requestRange": {"key": "L3AvZg=="}}],
    "failure": [
      {"requestRange": {"key": "L3AvbA=="}},
      {"requestRange": {"key": "L3AvZg=="}}]})"));
  const election::Response answer = response_to(campaign, R"({"header":
      {"revision":"5"},"responses":[{"response_range":{"kvs":[{"key":"L3AvbA==",
      "create_revision":"3","mod_revision":"3","value":"eA==","lease":"8"}]}}]})");
  const auto& seen = std::get<election::ReadResult>(answer);
  EXPECT_FALSE(seen.is_done);
  ASSERT_TRUE(seen.leader.has_value());
  EXPECT_EQ(seen.leader->value, "x");
  EXPECT_EQ(seen.leader->lease, 8);
  EXPECT_FALSE(seen.facts.has_value());
}

TEST(EtcdGateway, AWriteHasBothGuardsAndNoLease) {
  const election::Write write{"l", "f", "v", 3, 4};
  EXPECT_EQ(path_of(write), "/v3/kv/txn");
  EXPECT_EQ(body_as_json(write), json::parse(R"({
    "compare": [
      {"key": "L3AvbA==", "target": "CREATE", "result": "EQUAL", "createRevision": "3"},
      {"key": "L3AvZg==", "target": "MOD", "result": "EQUAL", "modRevision": "4"}],
    "success": [{"requestPut": {"key": "L3AvZg==", "value": "dg=="}}],
    "failure": [
      {"requestRange": {"key": "L3AvbA=="}},
      {"requestRange": {"key": "L3AvZg=="}}]})"))
      << "facts outlive their coordinator";
}

TEST(EtcdGateway, AReadHasNoGuardAndAlwaysSucceeds) {
  EXPECT_EQ(path_of(kRead), "/v3/kv/txn");
  EXPECT_EQ(body_as_json(kRead), json::parse(R"({
    "compare": [],
    "success": [{"requestRange": {"key": "L3AvbA=="}}, {"requestRange": {"key": "L3AvZg=="}}],
    "failure": []})"));
  const auto answer = response_to(kRead, R"({"header":{"revision":"5"},
      "responses":[{"response_range":{"kvs":null}},{"response_range":{"kvs":[{"key":"L3AvZg==",
      "create_revision":"3","mod_revision":"4","value":"eA=="}]}}]})");
  const auto& seen = std::get<election::ReadResult>(answer);
  EXPECT_TRUE(seen.is_done) << "there was no guard";
  EXPECT_FALSE(seen.leader.has_value());
  ASSERT_TRUE(seen.facts.has_value());
  EXPECT_EQ(seen.facts->mod_revision, 4);
}

TEST(EtcdGateway, EncodesLeasesAndUsers) {
  EXPECT_EQ(body_as_json(kGrant), json({{"TTL", "5"}}));
  EXPECT_EQ(body_as_json(kKeepAlive), json({{"ID", "12"}}));
  EXPECT_EQ(body_as_json(election::Revoke{12}), json({{"ID", "12"}}));
  EXPECT_EQ(path_of(kGrant), "/v3/lease/grant");
  EXPECT_EQ(path_of(kKeepAlive), "/v3/lease/keepalive");
  EXPECT_EQ(path_of(election::Revoke{12}), "/v3/lease/revoke");
  const GatewayRequest login = login_request("u", "p\"\xff");
  EXPECT_EQ(login.path, "/v3/auth/authenticate");
  EXPECT_EQ(json::parse(login.body)["name"], "u");
}

// As etcd 3.4 writes it, and with the field names of other releases.
TEST(EtcdGateway, DecodesTransactions) {
  const election::Write write{"l", "f", "v", 3, 4};
  for (const char* body : {R"({"header":{"cluster_id":"1","revision":"42"},"succeeded":true,
        "responses":[{"response_put":{}},{"response_range":{"kvs":[{"key":"L3AvbA==",
        "create_revision":"40","mod_revision":"41","version":"2","value":"AHY=","lease":"9"}],
        "count":"1"}},{"response_range":{}}]})",
                           R"({"header":{"revision":42},"succeeded":true,
        "responses":[{"responseRange":{"kvs":[{"key":"L3AvbA==","createRevision":40,
        "modRevision":41,"value":"AHY=","lease":9}]}}]})"}) {
    const auto answer = std::get<election::ReadResult>(response_to(write, body));
    EXPECT_TRUE(answer.is_done);
    EXPECT_EQ(answer.revision, 42);
    ASSERT_TRUE(answer.leader.has_value());
    EXPECT_EQ(answer.leader->value, std::string("\0v", 2));
    EXPECT_EQ(answer.leader->create_revision, 40);
    EXPECT_EQ(answer.leader->mod_revision, 41);
    EXPECT_EQ(answer.leader->lease, 9);
    EXPECT_FALSE(answer.facts.has_value());
  }
  const auto lost = response_to(write, R"({"header":{"revision":"1"}})");
  EXPECT_FALSE(std::get<election::ReadResult>(lost).is_done);
}

TEST(EtcdGateway, RejectsInvalidReplies) {
  for (const char* body :
       {"", "null", "[]", "{", "{}", R"({"header":{}})", R"({"header":{"revision":"-1"}})",
        R"({"header":{"revision":"1e3"}})", R"({"header":{"revision":{}}})",
        R"({"header":[],"responses":3})", R"({"header":{"revision":"1"},"succeeded":"yes"})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":{"a":1}}}]})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":[{}]}}]})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":[{"key":"a w="}]}}]})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":[{"key":7}]}}]})",
        R"({"header":{"revision":"99999999999999999999"}})", "\xff\xfe"}) {
    EXPECT_TRUE(has_failed(kRead, body)) << body;
    EXPECT_TRUE(has_failed(kGrant, body)) << body;
    EXPECT_FALSE(parse_token(body).ok()) << body;
  }
  const std::string deep = std::string(500'000, '[');
  EXPECT_TRUE(has_failed(kRead, deep));
  EXPECT_EQ(refusal_in(deep).size(), 300u);
}

TEST(EtcdGateway, DecodesLeaseReplies) {
  const auto granted = response_to(kGrant, R"({"header":{},"ID":"7587848943","TTL":"6"})");
  EXPECT_EQ(std::get<election::Granted>(granted).lease, 7587848943);
  EXPECT_EQ(std::get<election::Granted>(granted).ttl_s, 6);
  const auto kept = response_to(kKeepAlive, "{\"result\":{\"ID\":\"5\",\"TTL\":\"9\"}}\n");
  EXPECT_EQ(std::get<election::KeepAliveResult>(kept).ttl_s, 9);
  const auto ended = response_to(kKeepAlive, R"({"result":{"ID":"5"}})");
  EXPECT_EQ(std::get<election::KeepAliveResult>(ended).ttl_s, 0);
  for (const election::Request& request :
       {election::Request(kGrant), election::Request(kKeepAlive)}) {
    const auto refused =
        response_to(request, R"({"error":{"grpc_code":7,"message":"permission denied"}})");
    EXPECT_EQ(std::get<election::Refused>(refused).why, "etcd refused: permission denied");
    EXPECT_TRUE(has_failed(request, R"({"ID":"5","TTL":"99999999999999"})"));
  }
  const auto gone = response_to(election::Revoke{7}, "{}");
  EXPECT_TRUE(std::holds_alternative<election::Revoked>(gone));
}

TEST(EtcdGateway, ATokenBecomesAHeaderLine) {
  EXPECT_EQ(*parse_token(R"({"token":"abc.12"})"), "abc.12");
  EXPECT_FALSE(parse_token(R"({"token":"a\r\nX: y"})").ok());
  EXPECT_FALSE(parse_token(R"({"token":""})").ok());
}

TEST(EtcdGateway, ErrorTexts) {
  EXPECT_EQ(refusal_in(R"({"error":"etcdserver: user name is empty","code":3})"),
            "etcdserver: user name is empty");
  EXPECT_EQ(refusal_in(R"({"error":{"message":"no\nleader"}})"), "no leader");
  EXPECT_EQ(refusal_in("Client sent an HTTP request to an HTTPS server.\nX"),
            "Client sent an HTTP request to an HTTPS server.");
  EXPECT_EQ(refusal_in("\x1b[2J<html>"), "?[2J<html>");
  EXPECT_EQ(refusal_in("3"), "");
  EXPECT_EQ(refusal_in(R"({"message":")" + std::string(5000, 'x') + "\"}").size(), 300u);
}

TEST(EtcdGateway, OnlyARejectedRequestIsRefused) {
  const auto answer = [&](const Result<std::string>& reply) {
    return response_of(kKeepAlive, "", reply);
  };
  EXPECT_TRUE(std::holds_alternative<election::Refused>(answer(Error{ErrorKind::Refused, "no"})));
  for (const ErrorKind kind : {ErrorKind::Network, ErrorKind::Timeout, ErrorKind::Protocol}) {
    EXPECT_TRUE(std::holds_alternative<election::Failed>(answer(Error{kind, "?"})));
  }
  EXPECT_TRUE(std::holds_alternative<election::Failed>(answer(std::string("nonsense"))));
}

}  // namespace
}  // namespace cpprun::etcd

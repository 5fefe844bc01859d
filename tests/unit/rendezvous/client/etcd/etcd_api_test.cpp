// Requests to etcd and its answers, in the JSON of its gateway; and invalid answers.
#include "rendezvous/client/etcd/api.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rendezvous/client/etcd/election_requests.hpp"

namespace cpprun::etcd {
namespace {

using nlohmann::json;

json body_as_json(const Request& request) { return json::parse(body_of(request)); }

TEST(EtcdApi, EncodesATransactionForTheGateway) {
  Txn txn;
  txn.compare = {{Compare::What::Created, "k", 0}, {Compare::What::Written, "k", 7}};
  txn.then = {Put{"k", std::string("\0v", 2), 9}, Put{"d", "", 0}};
  txn.otherwise = {Get{"k"}};
  EXPECT_EQ(path_of(txn), "/v3/kv/txn");
  EXPECT_EQ(body_as_json(txn), json::parse(R"({
    "compare": [
      {"key": "aw==", "target": "CREATE", "result": "EQUAL", "createRevision": "0"},
      {"key": "aw==", "target": "MOD", "result": "EQUAL", "modRevision": "7"}],
    "success": [
      {"requestPut": {"key": "aw==", "value": "AHY=", "lease": "9"}},
      {"requestPut": {"key": "ZA==", "value": ""}}],
    "failure": [{"requestRange": {"key": "aw=="}}]})"));
}

TEST(EtcdApi, EncodesLeasesAndUsers) {
  EXPECT_EQ(body_as_json(LeaseGrant{std::chrono::milliseconds(2500)}), json({{"TTL", "3"}}));
  EXPECT_EQ(body_as_json(LeaseKeepAlive{12}), json({{"ID", "12"}}));
  EXPECT_EQ(path_of(LeaseGrant{}), "/v3/lease/grant");
  EXPECT_EQ(path_of(LeaseKeepAlive{12}), "/v3/lease/keepalive");
  EXPECT_EQ(path_of(LeaseRevoke{12}), "/v3/lease/revoke");
  EXPECT_EQ(path_of(Authenticate{}), "/v3/auth/authenticate");
  EXPECT_EQ(body_as_json(LeaseRevoke{12}), json({{"ID", "12"}}));
  EXPECT_EQ(body_as_json(Authenticate{"u", "p\"\xff"})["name"], "u");
}

// As etcd 3.4 writes it, and with the field names of other releases.
TEST(EtcdApi, DecodesTransactions) {
  for (const char* body : {R"({"header":{"cluster_id":"1","revision":"42"},"succeeded":true,
        "responses":[{"response_put":{}},{"response_range":{"kvs":[{"key":"aw==",
        "create_revision":"40","mod_revision":"41","version":"2","value":"AHY=","lease":"9"}],
        "count":"1"}},{"response_range":{}}]})",
                           R"({"header":{"revision":42},"succeeded":true,
        "responses":[{"responseRange":{"kvs":[{"key":"aw==","createRevision":40,
        "modRevision":41,"value":"AHY=","lease":9}]}}]})"}) {
    const Result<TxnAnswer> answer = parse_txn(body);
    ASSERT_TRUE(answer.ok()) << answer.error().text;
    EXPECT_TRUE(answer->held);
    EXPECT_EQ(answer->revision, 42);
    const KeyValue* found = answer->find("k");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->value, std::string("\0v", 2));
    EXPECT_EQ(found->create_revision, 40);
    EXPECT_EQ(found->mod_revision, 41);
    EXPECT_EQ(found->lease, 9);
    EXPECT_EQ(answer->find("x"), nullptr);
  }
  EXPECT_FALSE(parse_txn(R"({"header":{"revision":"1"}})")->held);
}

TEST(EtcdApi, RejectsInvalidReplies) {
  for (const char* body :
       {"", "null", "[]", "{", "{}", R"({"header":{}})", R"({"header":{"revision":"-1"}})",
        R"({"header":{"revision":"1e3"}})", R"({"header":{"revision":{}}})",
        R"({"header":[],"responses":3})", R"({"header":{"revision":"1"},"succeeded":"yes"})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":{"a":1}}}]})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":[{}]}}]})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":[{"key":"a w="}]}}]})",
        R"({"header":{"revision":"1"},"responses":[{"response_range":{"kvs":[{"key":7}]}}]})",
        R"({"header":{"revision":"99999999999999999999"}})", "\xff\xfe"}) {
    EXPECT_FALSE(parse_txn(body).ok()) << body;
    EXPECT_FALSE(parse_lease(body).ok()) << body;
    EXPECT_FALSE(parse_token(body).ok()) << body;
  }
  const std::string deep = std::string(500'000, '[');
  EXPECT_FALSE(parse_txn(deep).ok());
  EXPECT_EQ(refusal_in(deep).size(), 300u);
}

TEST(EtcdApi, DecodesLeaseReplies) {
  const Result<LeaseAnswer> granted = parse_lease(R"({"header":{},"ID":"7587848943","TTL":"5"})");
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->lease, 7587848943);
  EXPECT_EQ(granted->ttl, std::chrono::seconds(5));
  const Result<LeaseAnswer> kept = parse_lease("{\"result\":{\"ID\":\"5\",\"TTL\":\"9\"}}\n");
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->ttl, std::chrono::seconds(9));
  const Result<LeaseAnswer> gone = parse_lease(R"({"result":{"ID":"5"}})");
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone->ttl, Duration{});
  const Result<LeaseAnswer> refused =
      parse_lease(R"({"error":{"grpc_code":7,"message":"permission denied"}})");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::Refused);
  EXPECT_NE(refused.error().text.find("permission denied"), std::string::npos);
  EXPECT_FALSE(parse_lease(R"({"ID":"5","TTL":"99999999999999"})").ok());
}

TEST(EtcdApi, ATokenBecomesAHeaderLine) {
  EXPECT_EQ(*parse_token(R"({"token":"abc.12"})"), "abc.12");
  EXPECT_FALSE(parse_token(R"({"token":"a\r\nX: y"})").ok());
  EXPECT_FALSE(parse_token(R"({"token":""})").ok());
}

TEST(EtcdApi, ErrorTexts) {
  EXPECT_EQ(refusal_in(R"({"error":"etcdserver: user name is empty","code":3})"),
            "etcdserver: user name is empty");
  EXPECT_EQ(refusal_in(R"({"error":{"message":"no\nleader"}})"), "no leader");
  EXPECT_EQ(refusal_in("Client sent an HTTP request to an HTTPS server.\nX"),
            "Client sent an HTTP request to an HTTPS server.");
  EXPECT_EQ(refusal_in("\x1b[2J<html>"), "?[2J<html>");
  EXPECT_EQ(refusal_in("3"), "");
  EXPECT_EQ(refusal_in(R"({"message":")" + std::string(5000, 'x') + "\"}").size(), 300u);
}

TEST(ElectionRequestsTest, ACampaignGuardsTheKeyAndReadsIt) {
  const election::Campaign campaign{"l", "me", "f", 9};
  const auto txn = std::get<Txn>(request_of(campaign, "/p/"));
  ASSERT_EQ(txn.compare.size(), 1u);
  EXPECT_EQ(txn.compare[0].key, "/p/l");
  EXPECT_EQ(txn.compare[0].revision, 0);
  EXPECT_EQ(std::get<Put>(txn.then[0]).lease, 9);
  EXPECT_EQ(txn.otherwise.size(), 2u);
  const election::Response answer = answer_of(campaign, "/p/", std::string(R"({"header":
      {"revision":"5"},"responses":[{"response_range":{"kvs":[{"key":"L3AvbA==",
      "create_revision":"3","mod_revision":"3","value":"eA==","lease":"8"}]}}]})"));
  const auto& seen = std::get<election::ReadResult>(answer);
  EXPECT_FALSE(seen.is_done);
  ASSERT_TRUE(seen.leader.has_value());
  EXPECT_EQ(seen.leader->value, "x");
  EXPECT_EQ(seen.leader->lease, 8);
  EXPECT_FALSE(seen.facts.has_value());
}

TEST(ElectionRequestsTest, AWriteHasBothGuards) {
  const election::Write write{"l", "f", "facts", 3, 4};
  const auto txn = std::get<Txn>(request_of(write, ""));
  ASSERT_EQ(txn.compare.size(), 2u);
  EXPECT_EQ(txn.compare[0].what, Compare::What::Created);
  EXPECT_EQ(txn.compare[0].revision, 3);
  EXPECT_EQ(txn.compare[1].what, Compare::What::Written);
  EXPECT_EQ(txn.compare[1].revision, 4);
  EXPECT_EQ(std::get<Put>(txn.then[0]).lease, 0) << "facts outlive their coordinator";
}

TEST(ElectionRequestsTest, EncodesLeaseGrantRenewalAndRevocation) {
  const election::Grant grant{5};
  EXPECT_EQ(std::get<LeaseGrant>(request_of(grant, "/p/")).ttl, std::chrono::seconds(5));
  const auto granted = answer_of(grant, "", std::string(R"({"ID":"7","TTL":"6"})"));
  EXPECT_EQ(std::get<election::Granted>(granted).lease, 7);
  EXPECT_EQ(std::get<election::Granted>(granted).ttl_s, 6);
  const auto refused = answer_of(grant, "", std::string(R"({"error":{"message":"no space"}})"));
  EXPECT_EQ(std::get<election::Refused>(refused).why, "etcd refused: no space");
  EXPECT_EQ(std::get<LeaseKeepAlive>(request_of(election::KeepAlive{7}, "")).lease, 7);
  const election::Revoke revoke{7};
  EXPECT_EQ(std::get<LeaseRevoke>(request_of(revoke, "")).lease, 7);
  const auto gone = answer_of(revoke, "", std::string("{}"));
  EXPECT_TRUE(std::holds_alternative<election::Revoked>(gone));
}

TEST(ElectionRequestsTest, AReadAlwaysSucceeds) {
  const election::Read read{"l", "f"};
  const auto txn = std::get<Txn>(request_of(read, "/p/"));
  EXPECT_TRUE(txn.compare.empty());
  EXPECT_EQ(std::get<Get>(txn.then.at(0)).key, "/p/l");
  EXPECT_EQ(std::get<Get>(txn.then.at(1)).key, "/p/f");
  const auto answer = answer_of(read, "/p/", std::string(R"({"header":{"revision":"5"},
      "responses":[{"response_range":{"kvs":null}},{"response_range":{"kvs":[{"key":"L3AvZg==",
      "create_revision":"3","mod_revision":"4","value":"eA=="}]}}]})"));
  const auto& seen = std::get<election::ReadResult>(answer);
  EXPECT_TRUE(seen.is_done) << "there was no guard";
  EXPECT_FALSE(seen.leader.has_value());
  ASSERT_TRUE(seen.facts.has_value());
  EXPECT_EQ(seen.facts->mod_revision, 4);
}

TEST(ElectionRequestsTest, OnlyAFailedCompareIsARefusal) {
  const election::KeepAlive keep{5};
  const auto answer = [&](const Result<std::string>& reply) { return answer_of(keep, "", reply); };
  EXPECT_TRUE(std::holds_alternative<election::Refused>(answer(Error{ErrorKind::Refused, "no"})));
  for (const ErrorKind kind : {ErrorKind::Network, ErrorKind::Timeout, ErrorKind::Protocol}) {
    EXPECT_TRUE(std::holds_alternative<election::Failed>(answer(Error{kind, "?"})));
  }
  EXPECT_TRUE(std::holds_alternative<election::Failed>(answer(std::string("nonsense"))));
  EXPECT_EQ(
      std::get<election::KeepAliveResult>(answer(std::string(R"({"result":{"ID":"5"}})"))).ttl_s,
      0);
}

}  // namespace
}  // namespace cpprun::etcd

#include "rendezvous/client/etcd/election_requests.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace cpprun::etcd {
namespace {

using What = Compare::What;

struct ToRequest {
  const std::string& prefix;

  Request operator()(const election::Grant& grant) const {
    return LeaseGrant{std::chrono::seconds(grant.ttl_s)};
  }
  Request operator()(const election::KeepAlive& keep) const { return LeaseKeepAlive{keep.lease}; }
  Request operator()(const election::Revoke& revoke) const { return LeaseRevoke{revoke.lease}; }
  Request operator()(const election::Read& read) const {
    return Txn{{}, {Get{prefix + read.leader_key}, Get{prefix + read.job_state_key}}, {}};
  }
  Request operator()(const election::Campaign& campaign) const {
    const Get leader{prefix + campaign.leader_key};
    const Get facts{prefix + campaign.job_state_key};
    return Txn{{{What::Created, leader.key, 0}},
               {Put{leader.key, campaign.value, campaign.lease}, leader, facts},
               {leader, facts}};
  }
  Request operator()(const election::Write& write) const {
    const Get leader{prefix + write.leader_key};
    const Get facts{prefix + write.job_state_key};
    return Txn{{{What::Created, leader.key, write.create_revision},
                {What::Written, facts.key, write.mod_revision}},
               {Put{facts.key, write.value}},
               {leader, facts}};
  }
};

std::optional<election::KeyValue> key_value(const TxnAnswer& response, const std::string& key) {
  const KeyValue* found = response.find(key);
  if (found == nullptr) return std::nullopt;
  return election::KeyValue{found->value, found->create_revision, found->mod_revision,
                            found->lease};
}

struct ToAnswer {
  const std::string& prefix;
  const std::string& body;

  election::Response operator()(const election::Grant&) const {
    const Result<LeaseAnswer> lease = parse_lease(body);
    if (!lease) return failed(lease.error());
    return election::Granted{lease->lease,
                             std::chrono::floor<std::chrono::seconds>(lease->ttl).count()};
  }
  election::Response operator()(const election::KeepAlive&) const {
    const Result<LeaseAnswer> lease = parse_lease(body);
    if (!lease) return failed(lease.error());
    return election::KeepAliveResult{std::chrono::floor<std::chrono::seconds>(lease->ttl).count()};
  }
  election::Response operator()(const election::Revoke&) const { return election::Revoked{}; }
  election::Response operator()(const election::Read& read) const { return seen(read, true); }
  election::Response operator()(const election::Campaign& c) const { return seen(c, false); }
  election::Response operator()(const election::Write& write) const { return seen(write, false); }

 private:
  static election::Response failed(const Error& error) {
    if (error.kind == ErrorKind::Refused) return election::Refused{error.text};
    return election::Failed{error.text};
  }

  template <class Request>
  election::Response seen(const Request& request, bool is_read) const {
    const Result<TxnAnswer> txn = parse_txn(body);
    if (!txn) return failed(txn.error());
    return election::ReadResult{is_read || txn->held, txn->revision,
                                key_value(*txn, prefix + request.leader_key),
                                key_value(*txn, prefix + request.job_state_key)};
  }
};

}  // namespace

Request request_of(const election::Request& request, const std::string& prefix) {
  return std::visit(ToRequest{prefix}, request);
}

election::Response answer_of(const election::Request& request, const std::string& prefix,
                             const Result<std::string>& reply) {
  if (reply) return std::visit(ToAnswer{prefix, *reply}, request);
  if (reply.error().kind == ErrorKind::Refused) return election::Refused{reply.error().text};
  return election::Failed{reply.error().text};
}

}  // namespace cpprun::etcd

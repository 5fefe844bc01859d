// etcd's members, keys, TLS and user.
#include "common/limits/election.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"
#include "launcher/options/rdzv_conf.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

constexpr const char* kPassword = "CPPRUN_ETCD_PASSWORD";

Result<std::vector<Endpoint>> read_members(const ParsedOptions& options) {
  const std::string what = options.shown("rdzv-endpoint", options.rdzv_endpoint);
  if (text::strip(options.rdzv_endpoint).empty()) {
    return bad_value(
        "--rdzv-backend=etcd needs --rdzv-endpoint=HOST[:PORT][,HOST[:PORT]...], the members of "
        "etcd; it is no part of cpprun");
  }
  std::vector<Endpoint> members;
  for (const std::string& token : text::split(options.rdzv_endpoint, ',')) {
    if (text::strip(token).empty()) return bad_value(what + ": a member of etcd has no name");
    Result<Endpoint> member = parse_endpoint(text::strip(token), kEtcdPort);
    if (!member) {
      return bad_value(what + ": " + member.error().text +
                       (token.find("://") == std::string::npos
                            ? ""
                            : "\nhint: for TLS add --rdzv-conf=protocol=https"));
    }
    if (member->port == 0) return bad_value(what + ": port 0 is no port of etcd");
    members.push_back(std::move(*member));
  }
  if (members.size() > limits::kEtcdEndpoints) {
    return bad_value(what + ": at most " + std::to_string(limits::kEtcdEndpoints) +
                     " members of etcd can be named");
  }
  return members;
}

// torchrun's two etcd backends name the same setting differently. "": not given.
std::string text_of(const KeyValues& conf, std::string_view key, std::string_view other = "") {
  const std::string* found = find_value(conf, key, other);
  return found == nullptr ? "" : *found;
}

Status read_prefix(const KeyValues& conf, EtcdConfig& etcd) {
  const std::string given = text_of(conf, "etcd_prefix");
  if (given.empty()) return {};
  std::string prefix = given;
  while (prefix.ends_with('/')) prefix.pop_back();
  if (prefix.empty() || prefix.front() != '/' || prefix.size() > limits::kNameBytes) {
    return bad_conf("etcd_prefix", given, "write a path such as /team");
  }
  etcd.prefix = prefix + "/";
  return {};
}

Status read_tls(const KeyValues& conf, const Environment& environment, EtcdConfig& etcd) {
  const std::string protocol = text_of(conf, "protocol");
  if (!protocol.empty() && protocol != "http" && protocol != "https") {
    return bad_conf("protocol", protocol, "write http or https");
  }
  etcd.is_https = protocol == "https";
  etcd.ca_file = text_of(conf, "cacert", "ca_cert");
  etcd.cert_file = text_of(conf, "cert", "ssl_cert");
  etcd.key_file = text_of(conf, "key", "ssl_cert_key");
  const std::pair<const char*, const std::string*> files[] = {
      {"cacert", &etcd.ca_file}, {"cert", &etcd.cert_file}, {"key", &etcd.key_file}};
  for (const auto& [key, path] : files) {
    if (path->empty()) continue;
    if (!etcd.is_https) return bad_conf(key, *path, "is for TLS\nhint: add protocol=https");
    const FileKind kind = environment.look_at(*path).kind;
    if (kind == FileKind::Missing || kind == FileKind::Directory) {
      return bad_conf(key, *path, "there is no such file");
    }
  }
  if (etcd.cert_file.empty() != etcd.key_file.empty()) {
    return bad_value("--rdzv-conf: cert and key belong together\nhint: give both, or none");
  }
  return {};
}

Status read_user(const KeyValues& conf, const Environment& environment, EtcdConfig& etcd) {
  if (!text_of(conf, "password").empty()) {
    return bad_value(std::string("--rdzv-conf password=...: what is on a command line everybody on "
                                 "this machine can read\nhint: put it into ") +
                     kPassword);
  }
  etcd.user = text_of(conf, "user");
  etcd.password = environment.text(kPassword);
  if (!etcd.user.empty() && etcd.password.empty()) {
    return bad_conf("user", etcd.user, std::string("its password must be in ") + kPassword);
  }
  return {};
}

}  // namespace

Result<EtcdConfig> read_etcd(const ParsedOptions& options, const KeyValues& conf,
                             const Environment& environment) {
  EtcdConfig etcd;
  Result<std::vector<Endpoint>> members = read_members(options);
  if (!members) return members.error();
  etcd.endpoints = std::move(*members);
  if (Status ok = read_prefix(conf, etcd); !ok) return ok.error();
  if (Status ok = read_tls(conf, environment, etcd); !ok) return ok.error();
  if (Status ok = read_user(conf, environment, etcd); !ok) return ok.error();
  return etcd;
}

}  // namespace cpprun

#include "launcher/options/rdzv_conf.hpp"

#include <algorithm>
#include <array>

#include "common/limits/rendezvous.hpp"
#include "common/limits/store.hpp"
#include "common/text.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

constexpr std::array kWithEffect = {"join_timeout",
                                    "last_call_timeout",
                                    "keep_alive_interval",
                                    "keep_alive_max_attempt",
                                    "timeout",
                                    "is_host",
                                    "store_type",
                                    "scale_up_interval",
                                    "store_value_limit_mb",
                                    "store_memory_mb"};
// cpprun neither polls nor writes the whole state, so these limit nothing.
constexpr std::array kWithoutEffect = {"close_timeout", "heartbeat_timeout", "read_timeout",
                                       "cas_backoff_max_seconds"};
constexpr std::array kOnlyEtcd = {"protocol", "ssl_cert", "ssl_cert_key", "ca_cert", "cert",
                                  "key",      "cacert",   "etcd_prefix",  "user",    "password"};
// Without effect with etcd, where the elected node hosts.
constexpr const char* kIsHost = "is_host";

constexpr double kAboveZero = 1e-3;   // a millisecond: the shortest useful time
constexpr double kMaxSeconds = 1e8;   // three years; keeps times far from overflow
constexpr double kTorchInterval = 5;  // torchrun's default, used if only the attempts are given
constexpr int64_t kTorchAttempts = 3;

bool is_in(const auto& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

std::string_view unquoted(std::string_view text) {
  constexpr std::string_view kQuotes = "'\"";
  text = text::strip(text);
  while (!text.empty() && kQuotes.find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  while (!text.empty() && kQuotes.find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  return text::strip(text);
}

// The readers leave `out` unchanged if the key is missing.
template <class Out>
Status read_number(const KeyValues& conf, const std::string& key, double least, Out& out) {
  const std::string* text = find_value(conf, key);
  if (text == nullptr) return {};
  std::optional<double> value = text::parse_double(*text);
  if (!value) return bad_conf(key, *text, "not a number of seconds");
  if (*value < least || *value > kMaxSeconds) {
    return bad_conf(
        key, *text,
        least > 0 ? "must be above 0 (and below 1e8)" : "must be 0 or more (and below 1e8)");
  }
  out = *value;
  return {};
}

Status read_time(const KeyValues& conf, const std::string& key, double least, auto& out) {
  std::optional<double> value;
  if (Status status = read_number(conf, key, least, value); !status) return status;
  if (value) out = seconds(*value);
  return {};
}

Status read_int(const KeyValues& conf, const std::string& key, int64_t most,
                const std::string& wanted, int64_t& out) {
  const std::string* text = find_value(conf, key);
  if (text == nullptr) return {};
  std::optional<int64_t> value = text::parse_int(*text);
  if (!value || *value < 1 || *value > most) return bad_conf(key, *text, wanted);
  out = *value;
  return {};
}

Status read_boolean(const KeyValues& conf, const std::string& key, std::optional<bool>& out) {
  const std::string* text = find_value(conf, key);
  if (text == nullptr) return {};
  std::string lower = *text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::array kYes = {"1", "true", "t", "yes", "y"};
  constexpr std::array kNo = {"0", "false", "f", "no", "n"};
  if (!is_in(kYes, lower) && !is_in(kNo, lower)) return bad_conf(key, *text, "write true or false");
  out = is_in(kYes, lower);
  return {};
}

Status read_megabytes(const KeyValues& conf, const std::string& key, size_t most_bytes, auto& out) {
  const auto most = static_cast<int64_t>(most_bytes >> 20);
  int64_t megabytes = 0;
  Status status =
      read_int(conf, key, most,
               "write a whole number of megabytes from 1 to " + std::to_string(most), megabytes);
  if (megabytes > 0) out = static_cast<size_t>(megabytes) << 20;
  return status;
}

// If only one of the two keys is given, the other one has torchrun's default, so that the lease is
// the one that torchrun's documentation gives.
Status read_lease(const KeyValues& values, RendezvousConf& conf) {
  constexpr const char* kInterval = "keep_alive_interval";
  constexpr const char* kAttempts = "keep_alive_max_attempt";
  if (find_value(values, kInterval) == nullptr && find_value(values, kAttempts) == nullptr) {
    return {};
  }
  double interval = kTorchInterval;
  int64_t attempts = kTorchAttempts;
  if (Status status = read_number(values, kInterval, kAboveZero, interval); !status) return status;
  Status status =
      read_int(values, kAttempts, 1'000'000, "write a whole number from 1 on", attempts);
  if (!status) return status;
  double lease = interval * static_cast<double>(attempts);
  if (lease > kMaxSeconds)
    return bad_value(
        "--rdzv-conf keep_alive_interval x keep_alive_max_attempt is over 1e8 seconds");
  conf.lease = seconds(lease);
  if (conf.lease < limits::kNodeLeaseMin) {
    return bad_value("--rdzv-conf keep_alive_interval x keep_alive_max_attempt is a lease below " +
                     std::to_string(static_cast<int>(to_seconds(limits::kNodeLeaseMin))) +
                     " s, in which a busy machine loses healthy nodes\nhint: raise one of them");
  }
  // Two heartbeats must fit into a lease, so that one late heartbeat does not lose the node.
  conf.heartbeat = std::min(seconds(interval), conf.lease / 3);
  return {};
}

// These have no effect here, but a malformed value is an error under torchrun too.
Status check_only(const KeyValues& conf) {
  for (const char* key : {"close_timeout", "heartbeat_timeout", "read_timeout"}) {
    double unused = 0;
    if (Status status = read_number(conf, key, kAboveZero, unused); !status) return status;
  }
  double unused = 0;
  return read_number(conf, "cas_backoff_max_seconds", 0, unused);
}

void warn_of_keys(const KeyValues& conf, Backend backend, std::vector<std::string>& warnings) {
  const bool is_etcd = backend == Backend::Etcd;
  std::vector<std::string> known(kWithEffect.begin(), kWithEffect.end());
  known.insert(known.end(), kWithoutEffect.begin(), kWithoutEffect.end());
  if (is_etcd) known.insert(known.end(), kOnlyEtcd.begin(), kOnlyEtcd.end());
  for (const auto& [key, value] : conf) {
    const bool is_moot = is_etcd && key == kIsHost;
    if (is_in(known, key) && !is_moot) continue;
    std::string text = "--rdzv-conf: ";
    if (is_moot) {
      text += "is_host has no effect with etcd: the agent that is elected there leads the job";
    } else if (is_in(kOnlyEtcd, key)) {
      text += key + " is for etcd and has no effect here";
    } else {
      std::string near = text::nearest(key, known);
      text += "unknown key " + key + " is ignored" +
              (near.empty() ? "" : "\nhint: did you mean " + near + "?");
    }
    if (!is_in(warnings, text)) warnings.push_back(std::move(text));
  }
}

}  // namespace

Result<KeyValues> split_rdzv_conf(std::string_view text) {
  KeyValues values;
  std::string_view whole = unquoted(text);
  if (whole.empty()) return values;
  for (const std::string& piece : text::split(whole, ',')) {
    size_t equals = piece.find('=');
    std::string key(unquoted(std::string_view(piece).substr(0, equals)));
    std::string value;
    if (equals != std::string::npos) value = unquoted(std::string_view(piece).substr(equals + 1));
    if (key.empty()) {
      return bad_value("--rdzv-conf=" + std::string(text) +
                       ": a key is missing\nhint: write key=value,key=value");
    }
    if (value.empty()) {
      return bad_value("--rdzv-conf=" + std::string(text) + ": " + key +
                       " has no value\nhint: write " + key + "=VALUE");
    }
    values.emplace_back(std::move(key), std::move(value));
  }
  return values;
}

const std::string* find_value(const KeyValues& conf, std::string_view key, std::string_view other) {
  auto found = std::find_if(conf.rbegin(), conf.rend(),
                            [&](const auto& kv) { return kv.first == key || kv.first == other; });
  return found == conf.rend() ? nullptr : &found->second;
}

Error bad_conf(const std::string& key, const std::string& value, const std::string& why) {
  return bad_value("--rdzv-conf " + key + "=" + value + ": " + why);
}

Status check_store_type(const KeyValues& conf) {
  const std::string* type = find_value(conf, "store_type");
  if (type == nullptr || *type == "tcp") return {};
  if (*type == "file") {
    return bad_conf("store_type", *type,
                    "a shared file can't show when a node is gone\nhint: leave it out and give "
                    "--rdzv-endpoint=HOST:PORT");
  }
  return bad_conf("store_type", *type, "only tcp is known");
}

Result<RendezvousConf> read_rdzv_conf(const KeyValues& values, Backend backend,
                                      std::vector<std::string>& warnings) {
  const bool is_static = backend == Backend::Static;
  RendezvousConf conf;
  if (is_static) conf.join_timeout = limits::kStaticTimeout;
  Duration unused{};
  const Status read[] = {
      read_time(values, "join_timeout", kAboveZero, conf.join_timeout),
      read_time(values, "timeout", kAboveZero, is_static ? conf.join_timeout : unused),
      read_time(values, "last_call_timeout", kAboveZero, conf.last_call),
      read_time(values, "scale_up_interval", 0, conf.scale_up_interval),
      read_lease(values, conf),
      read_boolean(values, "is_host", conf.is_host),
      read_megabytes(values, "store_value_limit_mb", limits::kStoreCommandBytes,
                     conf.store_value_bytes),
      read_megabytes(values, "store_memory_mb", limits::kStoreMemoryMax, conf.store_memory_bytes),
      check_only(values),
  };
  for (const Status& status : read) {
    if (!status) return status.error();
  }
  warn_of_keys(values, backend, warnings);
  return conf;
}

}  // namespace cpprun

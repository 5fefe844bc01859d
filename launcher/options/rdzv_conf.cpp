#include "launcher/options/rdzv_conf.hpp"

#include <algorithm>
#include <array>

#include "common/limits/rendezvous.hpp"
#include "common/limits/store.hpp"
#include "common/text.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

constexpr std::array kWithEffect = {
    "join_timeout", "last_call_timeout", "keep_alive_interval", "keep_alive_max_attempt", "timeout",
    "is_host",      "store_type",        "scale_up_interval",   "store_value_limit_mb"};
// cpprun neither polls nor writes the whole state, so these limit nothing.
constexpr std::array kWithoutEffect = {"close_timeout", "heartbeat_timeout", "read_timeout",
                                       "cas_backoff_max_seconds"};
constexpr std::array kOnlyEtcd = {"protocol", "ssl_cert", "ssl_cert_key", "ca_cert", "cert",
                                  "key",      "cacert",   "etcd_prefix",  "user",    "password"};
// Without effect with etcd, where the elected node hosts.
constexpr const char* kIsHost = "is_host";

constexpr double kMaxSeconds = 1e8;   // three years; keeps times far from overflow
constexpr double kTorchInterval = 5;  // torchrun's default, used if only the attempts are given
constexpr double kTorchAttempts = 3;

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

Error bad(const std::string& key, const std::string& value, const std::string& why) {
  return bad_value("--rdzv-conf " + key + "=" + value + ": " + why);
}

class Reader {
 public:
  explicit Reader(KeyValues values) : values_(std::move(values)) {}

  // nullptr if not given; the last one counts.
  const std::string* find(std::string_view key) const {
    auto found = std::find_if(values_.rbegin(), values_.rend(),
                              [&](const auto& kv) { return kv.first == key; });
    return found == values_.rend() ? nullptr : &found->second;
  }

  // Leaves `out` unchanged if the key is missing.
  template <class Out>
  Status number(const std::string& key, double least, Out& out) const {
    const std::string* text = find(key);
    if (text == nullptr) return {};
    std::optional<double> value = text::parse_double(*text);
    if (!value) return bad(key, *text, "not a number of seconds");
    if (*value < least || *value > kMaxSeconds) {
      return bad(
          key, *text,
          least > 0 ? "must be above 0 (and below 1e8)" : "must be 0 or more (and below 1e8)");
    }
    out = *value;
    return {};
  }

  Status time(const std::string& key, double least, auto& out) const {
    std::optional<double> value;
    if (Status status = number(key, least, value); !status) return status;
    if (value) out = seconds(*value);
    return {};
  }

  Status boolean(const std::string& key, std::optional<bool>& out) const;
  Status megabytes(const std::string& key, size_t& out) const;
  Status lease(RendezvousConf& conf) const;
  Status checked_only() const;
  void warn(Backend backend, std::vector<std::string>& warnings) const;

 private:
  KeyValues values_;
};

constexpr double kAboveZero = 1e-3;  // a millisecond: the shortest useful time

Status Reader::boolean(const std::string& key, std::optional<bool>& out) const {
  const std::string* text = find(key);
  if (text == nullptr) return {};
  std::string lower = *text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::array kYes = {"1", "true", "t", "yes", "y"};
  constexpr std::array kNo = {"0", "false", "f", "no", "n"};
  if (!is_in(kYes, lower) && !is_in(kNo, lower)) return bad(key, *text, "write true or false");
  out = is_in(kYes, lower);
  return {};
}

Status Reader::megabytes(const std::string& key, size_t& out) const {
  const std::string* text = find(key);
  if (text == nullptr) return {};
  constexpr int64_t kMost = static_cast<int64_t>(limits::kStoreCommandBytes >> 20);
  std::optional<int64_t> value = text::parse_int(*text);
  if (!value || *value < 1 || *value > kMost) {
    return bad(key, *text, "write a whole number of megabytes from 1 to " + std::to_string(kMost));
  }
  out = static_cast<size_t>(*value) << 20;
  return {};
}

// If only one of the two keys is given, the other one has torchrun's default, so that the lease is
// the one that torchrun's documentation gives.
Status Reader::lease(RendezvousConf& conf) const {
  const std::string* interval_text = find("keep_alive_interval");
  const std::string* attempts_text = find("keep_alive_max_attempt");
  if (interval_text == nullptr && attempts_text == nullptr) return {};
  double interval = kTorchInterval;
  if (Status status = number("keep_alive_interval", kAboveZero, interval); !status) return status;
  int64_t attempts = static_cast<int64_t>(kTorchAttempts);
  if (attempts_text != nullptr) {
    std::optional<int64_t> value = text::parse_int(*attempts_text);
    if (!value || *value < 1 || *value > 1'000'000) {
      return bad("keep_alive_max_attempt", *attempts_text, "write a whole number from 1 on");
    }
    attempts = *value;
  }
  double lease = interval * static_cast<double>(attempts);
  if (lease > kMaxSeconds)
    return bad_value(
        "--rdzv-conf keep_alive_interval x keep_alive_max_attempt is over 1e8 seconds");
  conf.lease = seconds(lease);
  if (conf.lease < limits::kNodeLeaseMin) {
    return bad_value("--rdzv-conf keep_alive_interval x keep_alive_max_attempt is a lease below " +
                     std::to_string(static_cast<int>(to_seconds(limits::kNodeLeaseMin))) +
                     " s, in which a busy machine loses healthy nodes; raise one of them");
  }
  // Two heartbeats must fit into a lease, so that one late heartbeat does not lose the node.
  conf.heartbeat = std::min(seconds(interval), conf.lease / 3);
  return {};
}

// These have no effect here, but a malformed value is an error under torchrun too.
Status Reader::checked_only() const {
  for (const char* key : {"close_timeout", "heartbeat_timeout", "read_timeout"}) {
    double unused = 0;
    if (Status status = number(key, kAboveZero, unused); !status) return status;
  }
  double unused = 0;
  return number("cas_backoff_max_seconds", 0, unused);
}

void Reader::warn(Backend backend, std::vector<std::string>& warnings) const {
  const bool is_etcd = backend == Backend::Etcd;
  std::vector<std::string> known(kWithEffect.begin(), kWithEffect.end());
  known.insert(known.end(), kWithoutEffect.begin(), kWithoutEffect.end());
  if (is_etcd) known.insert(known.end(), kOnlyEtcd.begin(), kOnlyEtcd.end());
  for (const auto& [key, value] : values_) {
    const bool is_moot = is_etcd && key == kIsHost;
    if (is_in(known, key) && !is_moot) continue;
    std::string text = "--rdzv-conf: ";
    if (is_moot) {
      text += "is_host has no effect with etcd: whoever is elected there leads the job";
    } else if (is_in(kOnlyEtcd, key)) {
      text += key + " is for etcd and has no effect here";
    } else {
      std::string near = text::nearest(key, known);
      text += "unknown key " + key + " is ignored" +
              (near.empty() ? "" : "; did you mean " + near + "?");
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
                       ": a key is missing; write key=value,key=value");
    }
    if (value.empty()) {
      return bad_value("--rdzv-conf=" + std::string(text) + ": " + key + " has no value; write " +
                       key + "=VALUE");
    }
    values.emplace_back(std::move(key), std::move(value));
  }
  return values;
}

Status check_store_type(std::string_view conf) {
  Result<KeyValues> values = split_rdzv_conf(conf);
  if (!values) return values.error();
  const Reader reader(std::move(*values));
  const std::string* type = reader.find("store_type");
  if (type == nullptr || *type == "tcp") return {};
  if (*type == "file") {
    return bad("store_type", *type,
               "a shared file can't tell when a node is gone; leave it out and give "
               "--rdzv-endpoint=HOST:PORT");
  }
  return bad("store_type", *type, "only tcp is known");
}

Result<RendezvousConf> read_rdzv_conf(std::string_view text, Backend backend,
                                      std::vector<std::string>& warnings) {
  const bool is_static = backend == Backend::Static;
  Result<KeyValues> values = split_rdzv_conf(text);
  if (!values) return values.error();
  Reader reader(std::move(*values));
  RendezvousConf conf;
  if (is_static) conf.join_timeout = limits::kStaticTimeout;
  Duration unused{};
  const Status read[] = {
      reader.time("join_timeout", kAboveZero, conf.join_timeout),
      reader.time("timeout", kAboveZero, is_static ? conf.join_timeout : unused),
      reader.time("last_call_timeout", kAboveZero, conf.last_call),
      reader.time("scale_up_interval", 0, conf.scale_up_interval),
      reader.lease(conf),
      reader.boolean("is_host", conf.is_host),
      reader.megabytes("store_value_limit_mb", conf.store_value_bytes),
      reader.checked_only(),
  };
  for (const Status& status : read) {
    if (!status) return status.error();
  }
  reader.warn(backend, warnings);
  return conf;
}

}  // namespace cpprun

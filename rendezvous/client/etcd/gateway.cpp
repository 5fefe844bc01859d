#include "rendezvous/client/etcd/gateway.hpp"

#include <sodium/utils.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/json.hpp"
#include "common/text.hpp"

namespace cpprun::etcd {
namespace {

using nlohmann::json;

constexpr int kBase64 = sodium_base64_VARIANT_ORIGINAL;
constexpr size_t kShownBytes = 300;  // of etcd's error text

// ---------------------------------------------------------------- requests

std::string base64(const std::string& bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), kBase64), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), kBase64);
  text.pop_back();  // the terminator counts for libsodium
  return text;
}

std::string number(int64_t value) { return std::to_string(value); }

GatewayRequest post(const char* path, const json& body) { return {path, dump_json(body)}; }

json put(const std::string& key, const std::string& value) {
  return {{"requestPut", {{"key", base64(key)}, {"value", base64(value)}}}};
}
json get(const std::string& key) { return {{"requestRange", {{"key", base64(key)}}}}; }

// True if the key was created (CREATE), or last written (MOD), in this revision; 0: if there is no
// such key.
json equals(const std::string& key, const char* target, const char* field, int64_t revision) {
  return {{"key", base64(key)}, {"target", target}, {"result", "EQUAL"}, {field, number(revision)}};
}
json created_in(const std::string& key, int64_t revision) {
  return equals(key, "CREATE", "createRevision", revision);
}

// Atomic: `then` if every comparison is true, otherwise `otherwise`.
GatewayRequest txn(json compare, json then, json otherwise) {
  return post("/v3/kv/txn", {{"compare", std::move(compare)},
                             {"success", std::move(then)},
                             {"failure", std::move(otherwise)}});
}

struct ToRequest {
  const std::string& prefix;

  GatewayRequest operator()(const election::Grant& grant) const {
    return post("/v3/lease/grant", {{"TTL", number(grant.ttl_s)}});
  }
  GatewayRequest operator()(const election::KeepAlive& keep) const {
    return post("/v3/lease/keepalive", {{"ID", number(keep.lease)}});
  }
  GatewayRequest operator()(const election::Revoke& revoke) const {
    return post("/v3/lease/revoke", {{"ID", number(revoke.lease)}});
  }
  GatewayRequest operator()(const election::Read& read) const {
    return txn(json::array(), both(read), json::array());
  }
  GatewayRequest operator()(const election::Campaign& campaign) const {
    const std::string key = prefix + campaign.leader_key;
    json then = both(campaign);
    json leader = put(key, campaign.value);
    leader["requestPut"]["lease"] = number(campaign.lease);
    then.insert(then.begin(), std::move(leader));
    return txn(json::array({created_in(key, 0)}), std::move(then), both(campaign));
  }
  GatewayRequest operator()(const election::Write& write) const {
    const std::string key = prefix + write.job_state_key;
    return txn(json::array({created_in(prefix + write.leader_key, write.create_revision),
                            equals(key, "MOD", "modRevision", write.mod_revision)}),
               json::array({put(key, write.value)}), both(write));
  }

 private:
  json both(const auto& keys) const {
    return json::array({get(prefix + keys.leader_key), get(prefix + keys.job_state_key)});
  }
};

// ---------------------------------------------------------------- replies

Error invalid_reply(const std::string& what) {
  return Error{ErrorKind::Protocol, "etcd sent an invalid reply: " + what};
}

Result<json> parse_object(std::string_view body) {
  json whole = json::parse(body, nullptr, false);
  if (whole.is_discarded() || !whole.is_object()) return invalid_reply("no JSON object");
  return whole;
}

// Releases of etcd spell names differently. nullptr: omitted, which means zero.
const json* find(const json& object, const char* name, const char* other = nullptr) {
  if (!object.is_object()) return nullptr;
  auto it = object.find(name);
  if (it == object.end() && other != nullptr) it = object.find(other);
  return it == object.end() ? nullptr : &*it;
}

// Clears `is_well` if the value cannot be parsed.
int64_t number_in(const json* value, bool& is_well) {
  if (value == nullptr || value->is_null()) return 0;
  if (value->is_number_integer()) return value->get<int64_t>();
  const std::string* text = value->get_ptr<const std::string*>();
  const std::optional<int64_t> read = text != nullptr ? text::parse_int(*text) : std::nullopt;
  is_well = is_well && read.has_value();
  return read.value_or(0);
}

std::string bytes_in(const json* value, bool& is_well) {
  if (value == nullptr || value->is_null()) return "";
  const std::string* text = value->get_ptr<const std::string*>();
  if (text == nullptr) {
    is_well = false;
    return "";
  }
  std::string bytes(text->size(), '\0');  // upper bound of the decoded size
  size_t size = 0;
  const char* end = nullptr;
  const int failed = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                                       text->data(), text->size(), nullptr, &size, &end, kBase64);
  is_well = is_well && failed == 0 && end == text->data() + text->size();
  bytes.resize(failed == 0 ? size : 0);
  return bytes;
}

std::string shown(std::string_view text) { return text::one_line(text, kShownBytes); }

struct ToResponse {
  const std::string& prefix;
  const std::string& body;

  election::Response operator()(const election::Grant&) const { return of(lease()); }
  election::Response operator()(const election::KeepAlive&) const {
    const Result<election::Granted> kept = lease();
    if (!kept) return failed(kept.error());
    return election::KeepAliveResult{kept->ttl_s};
  }
  election::Response operator()(const election::Revoke&) const { return election::Revoked{}; }
  election::Response operator()(const election::Read& read) const { return of(seen(read, true)); }
  election::Response operator()(const election::Campaign& campaign) const {
    return of(seen(campaign, false));
  }
  election::Response operator()(const election::Write& write) const {
    return of(seen(write, false));
  }

  static election::Response failed(const Error& error) {
    if (error.kind == ErrorKind::Refused) return election::Refused{error.text};
    return election::Failed{error.text};
  }

 private:
  template <class T>
  static election::Response of(Result<T> parsed) {
    if (!parsed) return failed(parsed.error());
    return *std::move(parsed);
  }

  // The reply to a keep-alive is a stream of results or errors; one request gives one of them.
  Result<election::Granted> lease() const {
    Result<json> whole = parse_object(std::string_view(body).substr(0, body.find('\n')));
    if (!whole) return whole.error();
    if (find(*whole, "error") != nullptr) {
      return Error{ErrorKind::Refused, "etcd refused: " + refusal_in(body)};
    }
    const json* result = find(*whole, "result");
    const json& object = result != nullptr ? *result : *whole;
    bool is_well = true;
    const int64_t id = number_in(find(object, "ID"), is_well);
    const int64_t ttl_s = number_in(find(object, "TTL"), is_well);
    constexpr int64_t kMostSeconds = 9'000'000'000;  // etcd's limit
    if (!is_well || id == 0 || ttl_s > kMostSeconds) return invalid_reply("a lease");
    return election::Granted{id, std::max<int64_t>(ttl_s, 0)};
  }

  // `is_read`: the transaction had no comparison.
  Result<election::ReadResult> seen(const auto& keys, bool is_read) const {
    Result<json> whole = parse_object(body);
    if (!whole) return whole.error();
    bool is_well = true;
    election::ReadResult result;
    const json* header = find(*whole, "header");
    if (header != nullptr) result.revision = number_in(find(*header, "revision"), is_well);
    if (result.revision <= 0) return invalid_reply("a transaction without a revision");
    const json* held = find(*whole, "succeeded");
    is_well = is_well && (held == nullptr || held->is_boolean());
    result.is_done = is_read || (held != nullptr && *held == true);
    const json* responses = find(*whole, "responses");
    if (responses != nullptr && responses->is_array()) {
      for (const json& one : *responses) {
        const json* range = find(one, "response_range", "responseRange");
        if (range != nullptr) take_key_values(*range, keys, result, is_well);
      }
    }
    if (!is_well) return invalid_reply("a transaction with values that can't be read");
    return result;
  }

  void take_key_values(const json& range, const auto& keys, election::ReadResult& result,
                       bool& is_well) const {
    const json* list = find(range, "kvs");
    if (list == nullptr || list->is_null()) return;
    is_well = is_well && list->is_array();
    for (const json& one : *list) {
      const std::string key = bytes_in(find(one, "key"), is_well);
      const election::KeyValue found{
          bytes_in(find(one, "value"), is_well),
          number_in(find(one, "create_revision", "createRevision"), is_well),
          number_in(find(one, "mod_revision", "modRevision"), is_well),
          number_in(find(one, "lease"), is_well)};
      is_well = is_well && !key.empty();
      if (key == prefix + keys.leader_key) result.leader = found;
      if (key == prefix + keys.job_state_key) result.facts = found;
    }
  }
};

}  // namespace

GatewayRequest request_of(const election::Request& request, const std::string& prefix) {
  return std::visit(ToRequest{prefix}, request);
}

GatewayRequest login_request(const std::string& user, const std::string& password) {
  return post("/v3/auth/authenticate", {{"name", user}, {"password", password}});
}

election::Response response_of(const election::Request& request, const std::string& prefix,
                               const Result<std::string>& reply) {
  if (!reply) return ToResponse::failed(reply.error());
  return std::visit(ToResponse{prefix, *reply}, request);
}

Result<std::string> parse_token(std::string_view body) {
  Result<json> whole = parse_object(body);
  if (!whole) return whole.error();
  const json* token = find(*whole, "token");
  const std::string* text = token != nullptr ? token->get_ptr<const std::string*>() : nullptr;
  // The token becomes a header line, so it must not contain blanks or control characters.
  auto is_plain = [](char c) { return c > ' ' && c < '\x7f'; };
  if (text == nullptr || text->empty() || !std::all_of(text->begin(), text->end(), is_plain)) {
    return invalid_reply("no token");
  }
  return *text;
}

std::string refusal_in(std::string_view body) {
  const std::string_view first = body.substr(0, body.find('\n'));
  const json whole = json::parse(first, nullptr, false);
  if (whole.is_discarded()) return shown(first);
  const json* error = find(whole, "error");
  const json* message = error != nullptr && error->is_object() ? find(*error, "message") : error;
  if (message == nullptr) message = find(whole, "message");
  const std::string* text = message != nullptr ? message->get_ptr<const std::string*>() : nullptr;
  return text != nullptr ? shown(*text) : "";
}

}  // namespace cpprun::etcd

#include "rendezvous/client/etcd/api.hpp"

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

json to_json(const Put& put) {
  json made = {{"key", base64(put.key)}, {"value", base64(put.value)}};
  if (put.lease != 0) made["lease"] = number(put.lease);
  return {{"requestPut", std::move(made)}};
}
json to_json(const Get& get) { return {{"requestRange", {{"key", base64(get.key)}}}}; }

json to_json(const std::vector<Operation>& operations) {
  json list = json::array();
  for (const Operation& operation : operations) {
    list.push_back(std::visit([](const auto& one) { return to_json(one); }, operation));
  }
  return list;
}

json to_json(const Txn& txn) {
  json compare = json::array();
  for (const Compare& one : txn.compare) {
    const bool is_created = one.what == Compare::What::Created;
    compare.push_back({{"key", base64(one.key)},
                       {"target", is_created ? "CREATE" : "MOD"},
                       {"result", "EQUAL"},
                       {is_created ? "createRevision" : "modRevision", number(one.revision)}});
  }
  return {{"compare", std::move(compare)},
          {"success", to_json(txn.then)},
          {"failure", to_json(txn.otherwise)}};
}
json to_json(const LeaseGrant& grant) {
  const auto whole = std::chrono::ceil<std::chrono::seconds>(grant.ttl);
  return {{"TTL", number(whole.count())}};
}
json to_json(const LeaseKeepAlive& keep) { return {{"ID", number(keep.lease)}}; }
json to_json(const LeaseRevoke& revoke) { return {{"ID", number(revoke.lease)}}; }
json to_json(const Authenticate& who) { return {{"name", who.user}, {"password", who.password}}; }

struct PathOf {
  const char* operator()(const Txn&) const { return "/v3/kv/txn"; }
  const char* operator()(const LeaseGrant&) const { return "/v3/lease/grant"; }
  const char* operator()(const LeaseKeepAlive&) const { return "/v3/lease/keepalive"; }
  const char* operator()(const LeaseRevoke&) const { return "/v3/lease/revoke"; }
  const char* operator()(const Authenticate&) const { return "/v3/auth/authenticate"; }
};

// ---------------------------------------------------------------- replies

Error nonsense(const std::string& what) {
  return Error{ErrorKind::Protocol, "etcd answered what makes no sense: " + what};
}

Result<json> parse_object(std::string_view body) {
  json whole = json::parse(body, nullptr, false);
  if (whole.is_discarded() || !whole.is_object()) return nonsense("no JSON object");
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

void take_key_values(const json& range, std::vector<KeyValue>& found, bool& is_well) {
  const json* list = find(range, "kvs");
  if (list == nullptr || list->is_null()) return;
  is_well = is_well && list->is_array();
  for (const json& one : *list) {
    KeyValue kv;
    kv.key = bytes_in(find(one, "key"), is_well);
    kv.value = bytes_in(find(one, "value"), is_well);
    kv.create_revision = number_in(find(one, "create_revision", "createRevision"), is_well);
    kv.mod_revision = number_in(find(one, "mod_revision", "modRevision"), is_well);
    kv.lease = number_in(find(one, "lease"), is_well);
    is_well = is_well && !kv.key.empty();
    found.push_back(std::move(kv));
  }
}

std::string shown(std::string_view text) { return text::one_line(text, kShownBytes); }

}  // namespace

std::string path_of(const Request& request) { return std::visit(PathOf{}, request); }

std::string body_of(const Request& request) {
  const json body = std::visit([](const auto& one) { return to_json(one); }, request);
  return dump_json(body);
}

const KeyValue* TxnAnswer::find(std::string_view key) const {
  auto at = std::find_if(found.begin(), found.end(), [&](const auto& kv) { return kv.key == key; });
  return at == found.end() ? nullptr : &*at;
}

Result<TxnAnswer> parse_txn(std::string_view body) {
  Result<json> whole = parse_object(body);
  if (!whole) return whole.error();
  bool is_well = true;
  TxnAnswer answer;
  const json* header = find(*whole, "header");
  if (header != nullptr) answer.revision = number_in(find(*header, "revision"), is_well);
  if (answer.revision <= 0) return nonsense("a transaction without a revision");
  const json* held = find(*whole, "succeeded");
  if (held != nullptr) {
    is_well = is_well && held->is_boolean();
    answer.held = held->is_boolean() && held->get<bool>();
  }
  const json* responses = find(*whole, "responses");
  if (responses != nullptr && responses->is_array()) {
    for (const json& one : *responses) {
      const json* range = find(one, "response_range", "responseRange");
      if (range != nullptr) take_key_values(*range, answer.found, is_well);
    }
  }
  if (!is_well) return nonsense("a transaction with values that can't be read");
  return answer;
}

// The reply to a keep-alive is a stream of results or errors; one request gives one of them.
Result<LeaseAnswer> parse_lease(std::string_view body) {
  Result<json> whole = parse_object(body.substr(0, body.find('\n')));
  if (!whole) return whole.error();
  if (find(*whole, "error") != nullptr) {
    return Error{ErrorKind::Refused, "etcd refused: " + refusal_in(body)};
  }
  const json* result = find(*whole, "result");
  const json& object = result != nullptr ? *result : *whole;
  bool is_well = true;
  LeaseAnswer answer;
  answer.lease = number_in(find(object, "ID"), is_well);
  const int64_t ttl = number_in(find(object, "TTL"), is_well);
  constexpr int64_t kMostSeconds = 9'000'000'000;  // etcd's limit
  if (!is_well || answer.lease == 0 || ttl > kMostSeconds) return nonsense("a lease");
  answer.ttl = std::chrono::seconds(std::max<int64_t>(ttl, 0));
  return answer;
}

Result<std::string> parse_token(std::string_view body) {
  Result<json> whole = parse_object(body);
  if (!whole) return whole.error();
  const json* token = find(*whole, "token");
  const std::string* text = token != nullptr ? token->get_ptr<const std::string*>() : nullptr;
  // The token becomes a header line, so it must not contain blanks or control characters.
  auto is_plain = [](char c) { return c > ' ' && c < '\x7f'; };
  if (text == nullptr || text->empty() || !std::all_of(text->begin(), text->end(), is_plain)) {
    return nonsense("no token");
  }
  return *text;
}

std::string refusal_in(std::string_view body) {
  const std::string_view first = body.substr(0, body.find('\n'));
  const json whole = json::parse(first, nullptr, false);
  if (whole.is_discarded()) return shown(first);
  const json* error = find(whole, "error");
  const json* said = error != nullptr && error->is_object() ? find(*error, "message") : error;
  if (said == nullptr) said = find(whole, "message");
  const std::string* text = said != nullptr ? said->get_ptr<const std::string*>() : nullptr;
  return text != nullptr ? shown(*text) : "";
}

}  // namespace cpprun::etcd

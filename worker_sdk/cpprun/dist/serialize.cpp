// What the codecs share; JSON.
#include "cpprun/dist/serialize.hpp"

#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

namespace cpprun::dist::detail {
namespace {

using Json = nlohmann::ordered_json;

Object object_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean: return json.get<bool>();
    case Json::value_t::number_integer: return json.get<int64_t>();
    case Json::value_t::number_unsigned: return json.get<uint64_t>();
    case Json::value_t::number_float: return json.get<double>();
    case Json::value_t::string: return json.get<std::string>();
    case Json::value_t::array: {
      List list;
      for (const Json& item : json) list.items.push_back(object_of(item));
      return list;
    }
    case Json::value_t::object: {
      Dict dict;
      for (const auto& [key, value] : json.items()) {
        dict.pairs.emplace_back(Object(std::string(key)), object_of(value));
      }
      return dict;
    }
    default: return None{};
  }
}

Json json_of(const Object& object) {
  if (object.get_if<None>() != nullptr) return nullptr;
  if (const auto* value = object.get_if<bool>()) return *value;
  if (const auto number = int_of(object)) return *number;
  if (const auto number = large_int_of(object)) return *number;
  if (const auto* number = object.get_if<double>()) {
    if (std::isfinite(*number)) return *number;
    refuse_object("JSON has no number " + std::to_string(*number));
  }
  if (const auto* text = object.get_if<std::string>()) return *text;
  if (const auto* items = object.items()) {
    Json array = Json::array();
    for (const Object& item : *items) array.push_back(json_of(item));
    return array;
  }
  const auto* dict = object.get_if<Dict>();
  if (dict == nullptr) mismatch("what JSON can express", object);
  Json made = Json::object();
  for (const auto& [key, value] : dict->pairs) {
    const auto* name = key.get_if<std::string>();
    if (name == nullptr) mismatch("a str as a key", key);
    made[*name] = json_of(value);
  }
  return made;
}

}  // namespace

void mismatch(const char* wanted, const Object& object) {
  refuse_object(std::string("wanted is ") + wanted + ", it is of the type " + object.type_name());
}

void refuse_object(const std::string& why) {
  throw DistMismatchError("an object has another type: " + why);
}

std::optional<int64_t> int_of(const Object& object) {
  const auto* number = object.get_if<int64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<uint64_t> large_int_of(const Object& object) {
  const auto* big = object.get_if<BigInt>();
  uint64_t number = 0;
  if (big == nullptr || big->bytes.size() != sizeof number + 1 || big->bytes.back() != 0) return {};
  std::memcpy(&number, big->bytes.data(), sizeof number);
  return number;
}

void does_not_fit(const Object& object, size_t bits, bool is_signed) {
  if (!int_of(object) && object.get_if<BigInt>() == nullptr) mismatch("an int", object);
  const auto number = int_of(object);
  refuse_object("wanted is an int of " + std::to_string(bits) + " bits" +
                (is_signed ? "" : " without a sign") + ", it is " +
                (number ? std::to_string(*number) : "larger"));
}

const std::vector<Object>& items_of(const Object& object, const char* wanted) {
  const auto* items = object.items();
  if (items == nullptr) mismatch(wanted, object);
  return *items;
}

const std::vector<Object>& items_of(const Object& object, const char* wanted, size_t count) {
  const auto& items = items_of(object, wanted);
  if (items.size() == count) return items;
  refuse_object(std::string("wanted is ") + wanted + " of " + std::to_string(count) +
                " items, it has " + std::to_string(items.size()));
}

Object as_key(Object key) {
  const auto* items = key.items();
  if (items == nullptr) return key;
  Tuple made;
  for (const Object& item : *items) made.items.push_back(as_key(item));
  return made;
}

Object from_json(const std::string& text) {
  try {
    return object_of(Json::parse(text));
  } catch (const Json::exception& error) {
    throw DistArgumentError(std::string("dump() of an object is no JSON: ") + error.what());
  }
}

std::string to_json(const Object& object) {
  try {
    return json_of(object).dump();
  } catch (const Json::exception& error) {  // a str that is not UTF-8
    refuse_object(std::string("wanted is what JSON can express: ") + error.what());
  }
}

}  // namespace cpprun::dist::detail

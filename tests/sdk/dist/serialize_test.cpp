// Objects to bytes and back, and invalid bytes.
#include "cpprun/dist/serialize.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include "cpprun/dist/objects/object_header.hpp"

namespace shop {

struct Order {
  int amount = 0;
  std::string what;
  bool operator==(const Order&) const = default;
};

std::string to_bytes(const Order& order) { return std::to_string(order.amount) + ":" + order.what; }

void from_bytes(std::string_view bytes, Order& order) {
  const size_t colon = bytes.find(':');
  if (colon == std::string_view::npos) throw std::invalid_argument("no colon");
  order = {std::stoi(std::string(bytes.substr(0, colon))), std::string(bytes.substr(colon + 1))};
}

struct Renamed : Order {
  static constexpr std::string_view kSerialName = "shop.Order/2";
};

}  // namespace shop

namespace cpprun::dist {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <class T>
T there_and_back(const T& value) {
  return deserialize<T>(serialize<T>(value));
}

template <class T>
void expect_same(const T& value) {
  EXPECT_EQ(there_and_back(value), value) << type_tag<T>();
}

TEST(Serialize, Numbers) {
  expect_same<int8_t>(-5);
  expect_same<uint64_t>(std::numeric_limits<uint64_t>::max());
  expect_same<long long>(std::numeric_limits<long long>::min());
  expect_same(0.1);
  expect_same(-0.0f);
  expect_same(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(there_and_back(std::nan(""))));
  expect_same(true);
  expect_same('x');
}

TEST(Serialize, Containers) {
  expect_same(std::string("with\0zero", 9));
  expect_same(std::string());
  expect_same(std::vector<int>{1, 2, 3});
  expect_same(std::vector<double>{});
  expect_same(std::vector<bool>{true, false, true});
  expect_same(std::vector<std::vector<std::string>>{{"a", ""}, {}});
  expect_same(std::array<int, 3>{1, 2, 3});
  expect_same(std::map<std::string, std::vector<float>>{{"a", {1, 2}}, {"", {}}});
  expect_same(std::optional<std::string>("x"));
  expect_same(std::optional<std::string>());
  expect_same(std::pair<int, std::string>(1, "x"));
  expect_same(std::tuple<int, std::string, std::optional<bool>>(1, "x", false));
}

TEST(Serialize, Json) {
  expect_same(json{{"a", {1, 2.5, nullptr, "text"}}, {"b", true}});
  expect_same(std::vector<json>{json::object(), json(), json("x")});
}

TEST(Serialize, UserTypes) {
  expect_same(shop::Order{3, "apples: red"});
  expect_same(std::map<int, shop::Order>{{1, {3, ""}}});
}

TEST(Serialize, TagsNameTypes) {
  EXPECT_EQ(type_tag<int>(), "i32");
  EXPECT_EQ(type_tag<long>(), type_tag<long long>());
  EXPECT_EQ((type_tag<std::map<std::string, std::vector<double>>>()), "map<str,list<f64>>");
  EXPECT_EQ((type_tag<std::tuple<bool, at::Tensor, json>>()), "tuple<bool,tensor,json>");
  EXPECT_EQ((type_tag<std::array<uint8_t, 4>>()), "array<u8,4>");
  EXPECT_EQ(type_tag<shop::Order>(), "bytes<shop::Order>");
  EXPECT_EQ(type_tag<shop::Renamed>(), "bytes<shop.Order/2>");
  static_assert(!Serializable<std::vector<int*>>);
  static_assert(!Serializable<std::array<int, 0>>);
}

void expect_same_tensor(const at::Tensor& value) {
  const at::Tensor back = there_and_back(value);
  EXPECT_EQ(back.scalar_type(), value.scalar_type());
  EXPECT_EQ(back.requires_grad(), value.requires_grad());
  EXPECT_TRUE(at::equal(back, value)) << value;
}

TEST(Serialize, Tensors) {
  for (const auto type : {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf,
                          at::kFloat, at::kDouble, at::kBFloat16, at::kBool, at::kComplexFloat}) {
    expect_same_tensor(torch::arange(6).reshape({2, 3}).to(type));
  }
  expect_same_tensor(torch::tensor(3.5));
  expect_same_tensor(torch::empty({0, 4}));
  expect_same_tensor(torch::arange(12).reshape({3, 4}).t());
  expect_same_tensor(torch::ones({2}).requires_grad_());
  EXPECT_FALSE(there_and_back(at::Tensor()).defined());
  EXPECT_THROW(serialize(torch::ones({2, 2}).to_sparse()), DistUnsupportedError);
}

TEST(Serialize, RejectsWrongTypes) {
  EXPECT_THROW(deserialize<int>(serialize<int64_t>(1)), DistMismatchError);
  EXPECT_THROW(deserialize<int64_t>(serialize<int>(1)), DistMismatchError);
  EXPECT_THAT([] { deserialize<bool>("\2"); },
              ThrowsMessage<DistMismatchError>(HasSubstr("a bool is 2")));
  EXPECT_THAT([] { deserialize<json>(serialize<std::string>("{")); },
              ThrowsMessage<DistMismatchError>(HasSubstr("JSON that does not parse")));
  EXPECT_THAT(
      [] { deserialize<shop::Order>(serialize<std::string>("x")); },
      ThrowsMessage<DistMismatchError>(HasSubstr("from_bytes of shop::Order says: no colon")));
}

std::string count_of(uint64_t count) { return serialize(count); }

TEST(Serialize, RejectsHostileLengths) {
  for (const uint64_t count : {uint64_t{1}, uint64_t{1} << 40, ~uint64_t{0}}) {
    const std::string bytes = count_of(count);
    EXPECT_THROW(deserialize<std::string>(bytes), DistMismatchError);
    EXPECT_THROW(deserialize<std::vector<double>>(bytes), DistMismatchError);
    EXPECT_THROW(deserialize<std::vector<std::string>>(bytes), DistMismatchError);
    EXPECT_THROW((deserialize<std::map<int, int>>(bytes)), DistMismatchError);
    EXPECT_THROW(deserialize<json>(bytes), DistMismatchError);
  }
  ByteWriter twice;
  twice.number<uint64_t>(2);
  for (int i = 0; i < 4; ++i) twice.number<uint8_t>(1);
  using Small = std::map<int8_t, int8_t>;
  EXPECT_THAT([bytes = twice.take()] { deserialize<Small>(bytes); },
              ThrowsMessage<DistMismatchError>(HasSubstr("a key is twice")));
}

std::string tensor_bytes(uint8_t type, uint8_t flags, const std::vector<int64_t>& sizes,
                         size_t payload) {
  ByteWriter to;
  to.number(type);
  to.number(flags);
  to.number(static_cast<uint8_t>(sizes.size()));
  for (const int64_t size : sizes) to.number(size);
  return to.take() + std::string(payload, 'x');
}

TEST(Serialize, RejectsHostileTensors) {
  const auto f32 = static_cast<uint8_t>(at::kFloat);
  EXPECT_NO_THROW(deserialize<at::Tensor>(tensor_bytes(f32, 0, {2, 2}, 16)));
  for (const std::string& bytes :
       {tensor_bytes(f32, 0, {2, 2}, 15), tensor_bytes(f32, 0, {2, 2}, 17),
        tensor_bytes(static_cast<uint8_t>(at::kBool), 0, {3}, 3),
        tensor_bytes(f32, 0, {-2, -2}, 16), tensor_bytes(200, 0, {2, 2}, 16),
        tensor_bytes(f32, 0x40, {2, 2}, 16), tensor_bytes(f32, 0, {int64_t{1} << 62}, 16),
        tensor_bytes(f32, 0, {int64_t{1} << 32, int64_t{1} << 32}, 16),
        tensor_bytes(f32, 0, {int64_t{1} << 32, int64_t{1} << 32, 0}, 0),
        tensor_bytes(f32, 0, std::vector<int64_t>(65, 1), 4),
        tensor_bytes(static_cast<uint8_t>(at::ScalarType::QInt8), 0, {1}, 1)}) {
    EXPECT_THROW(deserialize<at::Tensor>(bytes), DistMismatchError);
  }
}

using Everything =
    std::tuple<std::vector<std::string>, std::map<std::string, std::optional<double>>, at::Tensor,
               json, shop::Order, std::vector<bool>>;

// Truncated or changed bytes give a value or a DistMismatchError, nothing else.
TEST(Serialize, DamagedBytesNeverCrash) {
  const Everything value{std::vector<std::string>{"a", "bc"},
                         std::map<std::string, std::optional<double>>{{"x", 1.5}, {"y", {}}},
                         torch::arange(4),
                         json{{"k", {1, 2}}},
                         shop::Order{3, "pears"},
                         std::vector<bool>{true, false}};
  const std::string bytes = serialize(value);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(deserialize<Everything>(bytes.substr(0, size)), DistMismatchError);
  }
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      deserialize<Everything>(damaged);
    } catch (const DistMismatchError&) {
    }
  }
}

std::string header(const std::string& type, uint64_t count = 1, uint64_t bytes = 8) {
  return ObjectHeader{"all_gather_object", type, 7, -1, count, bytes}.packed();
}

TEST(ObjectHeader, NamesRanksThatDisagree) {
  EXPECT_EQ(agreed("here", {4, 6}, {header("i32"), header("i32", 1, 9)}, true)[1].bytes, 9u);
  EXPECT_THAT(
      [] {
        agreed("here", {4, 6}, {header("i32"), header("list<i32>")}, true);
      },
      ThrowsMessage<DistMismatchError>(
          HasSubstr("rank 4: all_gather_object of i32, 1 object(s); rank 6: "
                    "all_gather_object of list<i32>, 1 object(s)")));
  EXPECT_THROW(agreed("here", {4, 6}, {header("i32"), header("i32", 2)}, true), DistMismatchError);
  EXPECT_NO_THROW(agreed("here", {4, 6}, {header("i32"), header("i32", 2)}, false));
}

TEST(ObjectHeader, RejectsHostileHeaders) {
  EXPECT_THROW(ObjectHeader::unpacked(std::string(kObjectHeaderBytes, '\0')), DistMismatchError);
  EXPECT_THROW(ObjectHeader::unpacked(header("i32", 1, kObjectBytesMax + 1)), DistMismatchError);
  const std::string good = header("i32");
  for (size_t size = 0; size < 60; ++size) {
    EXPECT_THROW(ObjectHeader::unpacked(good.substr(0, size)), DistMismatchError);
  }
  EXPECT_THAT(
      [] {
        agreed("here", {4, 6}, {header("i32"), std::string(256, 'x')}, true);
      },
      ThrowsMessage<DistMismatchError>(HasSubstr("rank 6 sent no header")));
}

}  // namespace
}  // namespace cpprun::dist

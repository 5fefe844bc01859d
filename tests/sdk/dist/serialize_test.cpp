// Objects to bytes and back, and invalid bytes.
#include "cpprun/dist/serialize.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include "snapshot_files/pickle/pickle.hpp"

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
  EXPECT_EQ(there_and_back(value), value);
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

static_assert(!Serializable<std::vector<int*>>);
static_assert(!Serializable<std::array<int, 0>>);

template <class T>
std::string refusal(const Object& object) {
  try {
    deserialize<T>(dumps(object));
  } catch (const DistMismatchError& error) {
    return error.what();
  }
  return "read";
}

TEST(Serialize, ReadsWhatFits) {
  EXPECT_EQ(deserialize<int64_t>(serialize<int8_t>(-1)), -1);
  EXPECT_EQ(deserialize<double>(serialize<int>(3)), 3.0);
  EXPECT_EQ(deserialize<std::string>(serialize(std::string("\xff\x00", 2))).size(), 2u);
  EXPECT_EQ((deserialize<std::vector<int>>(serialize(std::pair(1, 2)))), (std::vector{1, 2}));
  EXPECT_EQ((deserialize<std::map<std::vector<int>, int>>(
                 serialize(std::map<std::vector<int>, int>{{{1, 2}, 3}}))
                 .begin()
                 ->first.size()),
            2u);
  EXPECT_EQ(deserialize<uint8_t>(serialize(255)), 255);
}

TEST(Serialize, NamesTheTypeThatItGot) {
  EXPECT_THAT(refusal<int>("text"), HasSubstr("wanted is an int, it is of the type str"));
  EXPECT_THAT(refusal<int>(true), HasSubstr("of the type bool"));
  EXPECT_THAT(refusal<bool>(1), HasSubstr("wanted is a bool, it is of the type int"));
  EXPECT_THAT(refusal<uint8_t>(256), HasSubstr("8 bits without a sign, it is 256"));
  EXPECT_THAT(refusal<uint64_t>(-1), HasSubstr("64 bits without a sign, it is -1"));
  EXPECT_THAT(refusal<int64_t>(~uint64_t{0}), HasSubstr("64 bits, it is larger"));
  EXPECT_THAT(refusal<float>(None{}), HasSubstr("wanted is a float, it is of the type NoneType"));
  EXPECT_THAT(refusal<std::string>(List{}), HasSubstr("of the type list"));
  EXPECT_THAT(refusal<std::vector<int>>(Dict{}), HasSubstr("of the type dict"));
  EXPECT_THAT((refusal<std::tuple<int, int>>(Tuple{{1}})), HasSubstr("a tuple of 2 items"));
  EXPECT_THAT((refusal<std::map<int, int>>(Dict{{{1, 2}, {1, 3}}})), HasSubstr("a key is twice"));
  EXPECT_THAT(refusal<at::Tensor>(0.5), HasSubstr("wanted is a Tensor, it is of the type float"));
  EXPECT_THAT(refusal<std::monostate>(1), HasSubstr("wanted is None"));
  EXPECT_THAT(refusal<json>(Dict{{{1, 2}}}), HasSubstr("a str as a key, it is of the type int"));
  EXPECT_THAT(refusal<json>(torch::ones({1})), HasSubstr("of the type Tensor"));
  EXPECT_THAT(refusal<shop::Order>(Bytes{"x"}), HasSubstr("from_bytes says: no colon"));
  EXPECT_THAT(refusal<shop::Order>("3:x"), HasSubstr("wanted is bytes"));
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

std::string pickled(const pickle::TensorRef& tensor, const std::string& bytes) {
  pickle::Object object;
  object.storages[tensor.storage] = {bytes, "cpu"};
  object.value = tensor;
  return pickle::write_object(object);
}

std::string loads_refusal(const std::string& bytes) {
  try {
    loads(bytes);
  } catch (const DistMismatchError& error) {
    return error.what();
  }
  return "read";
}

TEST(Serialize, RejectsHostilePickles) {
  EXPECT_EQ(loads_refusal(""), "malformed object: pickle, at byte 0: is cut short");
  EXPECT_EQ(loads_refusal("\x80\x04\x8e" + std::string(8, '\xff')),
            "malformed object: pickle, at byte 11: is cut short");
  EXPECT_THAT(loads_refusal("\x80\x04i."), HasSubstr("code 105"));
  EXPECT_THAT(loads_refusal("\x80\x04" + std::string(5000, ']') + std::string(4999, 'a') + "."),
              HasSubstr("is nested deeper than 100"));
  EXPECT_THAT(loads_refusal("\x80\x04"
                            "cposix\nsystem\n)R."),
              HasSubstr("names posix.system"));
}

TEST(Serialize, RejectsHostileTensors) {
  const std::string four("\0\x01\x01\x02", 4);
  EXPECT_EQ(loads_refusal(pickled({"a", "uint8", 4, 0, {4}, {1}, false}, four)), "read");
  EXPECT_THAT(loads_refusal(pickled({"a", "uint8", 4, 1, {4}, {1}, false}, four)),
              HasSubstr("a tensor reaches beyond storage"));
  EXPECT_EQ(loads_refusal(pickled({"a", "bool", 4, 0, {4}, {1}, false}, four)),
            "malformed object: a tensor of bools that are none");
  const std::vector<int64_t> ones(65, 1), huge(2, int64_t{1} << 40), zeros(2, 0);
  EXPECT_EQ(loads_refusal(pickled({"a", "uint8", 4, 0, ones, ones, false}, four)),
            "malformed object: a tensor of 65 dimensions");
  EXPECT_THAT(loads_refusal(pickled({"a", "uint8", 4, 0, huge, zeros, false}, four)),
              HasSubstr("malformed object: a tensor: "));
}

// Else a short pickle could make a copy of a large storage for each of its tensors.
TEST(Serialize, TensorsOfOneConjugateStorageShareIt) {
  const std::string one = pickled({"a", "complex64", 1, 0, {1}, {1}, false, true}, "12345678");
  const size_t begin = one.find("ctorch.storage\n_load_from_bytes"),
               end = one.find("tR", begin) + 2;
  const std::string before = one.substr(2, begin - 2), call = one.substr(begin, end - begin);
  const std::string after = one.substr(end, one.size() - end - 1);
  const auto both = deserialize<std::vector<at::Tensor>>("\x80\x04(" + before + call + "q\x01" +
                                                         after + before + "h\x01" + after + "t.");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].const_data_ptr(), both[1].const_data_ptr());
  float imaginary = 0;
  std::memcpy(&imaginary, "5678", sizeof imaginary);
  EXPECT_EQ(at::imag(both[0]).item<float>(), -imaginary);
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

}  // namespace
}  // namespace cpprun::dist

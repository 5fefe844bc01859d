// Pickles of torch.save: accepted and rejected input, and reading of written pickles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::pickle {
namespace {

using testing::HasSubstr;

std::string bytes(std::string_view text) { return "\x80\x02" + std::string(text) + "."; }

Value read_well(const std::string& pickle) {
  Result<Value> value = read(pickle);
  EXPECT_TRUE(value.ok()) << value.error().text;
  return value ? *value : Value();
}

std::string refusal(const std::string& pickle, const ReadLimits& limits = {}) {
  Result<Value> value = read(pickle, limits);
  return value ? "read" : value.error().text;
}

// A short text, stored as memo entry 1.
std::string remembered(const std::string& text) {
  return "U" + std::string(1, static_cast<char>(text.size())) + text + "q\x01";
}

TensorRef some_tensor() { return {"0", "bfloat16", 12, 2, {2, 3}, {5, 1}, true}; }

TEST(Pickle, ReadsAWrittenPickle) {
  const Value all(Dict{{
      {"none", None{}},
      {"flags", Tuple{{true, false}}},
      {"numbers",
       List{{int64_t{0}, int64_t{255}, int64_t{256}, int64_t{-1}, INT64_MIN, INT64_MAX}}},
      {"rates", List{{0.1, -0.0, 1e300}}},
      {"text", "gr\xc3\xbc\xc3\x9f"},
      {"bytes", Bytes{std::string("\x00\x7f\x80\xff", 4)}},
      {int64_t{7}, Dtype{"float32"}},
      {"complex", Complex{1, -2}},
      {"tensor", some_tensor()},
      {"scalar", TensorRef{"1", "float64", 1, 0, {}, {}, false}},
      {"empty", TensorRef{"2", "int64", 0, 0, {0, 3}, {3, 1}, false}},
      {"new", TensorRef{"3", "uint16", 4, 0, {4}, {1}, false}},
      {"lazy", TensorRef{"4", "complex64", 4, 0, {4}, {1}, false, true, true}},
      {"negative", TensorRef{"5", "uint16", 4, 0, {4}, {1}, false, false, true}},
      {"nothing", Dict{}},
      {"big", List{{BigInt{std::string(9, '\x7f')}, BigInt{std::string(300, '\x81')}}}},
  }});
  EXPECT_EQ(read_well(write(all)), all);
}

TEST(Pickle, IntegersAreBigOnlyIfTheyMustBe) {
  EXPECT_EQ(read_well(bytes("\x8a\x09"
                            "12345678\x01")),
            Value(BigInt{"12345678\x01"}));
  EXPECT_EQ(read_well(bytes(std::string("\x8a\x0a\x05\0\0\0\0\0\0\0\0\0", 12))), Value(int64_t{5}));
  EXPECT_EQ(read_well(bytes(std::string("\x8a\x09\0\0\0\0\0\0\0\x80\xff", 11))), Value(INT64_MIN));
  EXPECT_EQ(read_well(bytes(std::string("\x8a\x09\0\0\0\0\0\0\0\x80\0", 11))),
            Value(BigInt{std::string("\0\0\0\0\0\0\0\x80\0", 9)}));
  EXPECT_EQ(read_well(bytes(std::string("\x8b\0\0\0\0", 5))), Value(int64_t{0}));
}

TEST(Pickle, FindsByTextKey) {
  const Dict dict{{{int64_t{1}, "a"}, {"x", "b"}}};
  ASSERT_NE(dict.find("x"), nullptr);
  EXPECT_EQ(*dict.find("x"), Value("b"));
  EXPECT_EQ(dict.find("y"), nullptr);
}

TEST(Pickle, TextThatPythonCannotDecodeIsBytes) {
  for (const char* text : {"", "a", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac", "\xed\x9f\xbf",
                           "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(text_or_bytes(text), Value(text));
  }
  for (const char* bytes :
       {"a\xff", "\x80", "\xc3", "\xc3z", "\xc0\xaf", "\xe0\x9f\xbf", "\xe2\x82", "\xe2\x82z",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_EQ(text_or_bytes(bytes), Value(Bytes{bytes}));
  }
}

TEST(Pickle, SharedPartsAreDuplicated) {
  // l = [1]; (l, l)
  EXPECT_EQ(read_well(bytes("]q\x01K\x01"
                            "ah\x01\x86")),
            Value(Tuple{{List{{int64_t{1}}}, List{{int64_t{1}}}}}));
}

TEST(Pickle, IgnoresAttributesOfADict) {
  const std::string dict = "ccollections\nOrderedDict\n)R";
  EXPECT_EQ(read_well(bytes(dict + "}b")), Value(Dict{}));
}

// MultiStepLR stores its milestones in a Counter.
TEST(Pickle, ACounterIsADict) {
  const std::string counter = "ccollections\nCounter\n";
  EXPECT_EQ(read_well(bytes(counter + "}q\x01K\x02K\x01s\x85R")),
            Value(Dict{{{int64_t{2}, int64_t{1}}}}));
  EXPECT_EQ(read_well(bytes(counter + ")R")), Value(Dict{}));
  EXPECT_THAT(refusal(bytes(counter + "N\x85R")), HasSubstr("arguments that it does not have"));
}

TEST(Pickle, RejectsForeignGlobalsByName) {
  EXPECT_THAT(refusal(bytes("cposix\nsystem\nX\x02\x00\x00\x00ls\x85R")),
              HasSubstr("names posix.system"));
  EXPECT_THAT(refusal(bytes("ctorch._utils\n_rebuild_tensor_v2\n")), HasSubstr("wanted"));
  EXPECT_THAT(refusal(bytes("ctorch\nfloat32\n)R")), HasSubstr("cannot be called"));
}

TEST(Pickle, TensorsStayWithinTheirStorage) {
  for (auto [numel, offset, size, stride] : {std::array<int64_t, 4>{4, 0, 5, 1},
                                             {4, 4, 1, 1},
                                             {4, -1, 1, 1},
                                             {4, 0, 2, 4},
                                             {4, 0, INT64_MAX, INT64_MAX},
                                             {4, 0, -1, 1},
                                             {4, 0, 2, -1}}) {
    const TensorRef tensor{"0", "float32", numel, offset, {size}, {stride}, false};
    EXPECT_THAT(refusal(write(tensor)), HasSubstr("beyond storage '0'")) << size << ' ' << stride;
  }
}

// The number of elements is that of the storage's dtype.
TEST(Pickle, RejectsATypedStorageOfAnotherDtype) {
  std::string pickle = write(TensorRef{"0", "uint16", 2, 0, {2}, {1}, false});
  const std::string untyped = "ctorch.storage\nUntypedStorage";
  pickle.replace(pickle.find(untyped), untyped.size(), "ctorch\nByteStorage");
  EXPECT_THAT(refusal(pickle), HasSubstr("arguments that it does not have"));
}

// Python's bytes in protocol 2 are latin-1 text; anything else would give other bytes than it does.
TEST(Pickle, RejectsBytesThatAreNoLatin1Text) {
  const auto encoded = [](const std::string& text, const std::string& codec) {
    const auto put = [](const std::string& each) {
      return "U" + std::string(1, static_cast<char>(each.size())) + each;
    };
    return refusal(bytes("c_codecs\nencode\n" + put(text) + put(codec) + "\x86R"));
  };
  EXPECT_EQ(encoded("\xc3\xa4", "latin1"), "read");
  EXPECT_THAT(encoded("\xc3\xa4", "utf-8"), HasSubstr("arguments that it does not have"));
  EXPECT_THAT(encoded("\xc3z", "latin1"), HasSubstr("arguments that it does not have"));
  EXPECT_THAT(encoded("\xc4\x80", "latin1"), HasSubstr("arguments that it does not have"));
}

// Metadata that changes the values must not get lost.
TEST(Pickle, RejectsUnknownTensorMetadata) {
  std::string lazy = write(TensorRef{"0", "float32", 4, 0, {4}, {1}, false, false, true});
  lazy.replace(lazy.find("neg"), 3, "abs");
  EXPECT_THAT(refusal(lazy), HasSubstr("arguments that it does not have"));
}

TEST(Pickle, RejectsBrokenBytesWithTheirPosition) {
  EXPECT_THAT(refusal(""), HasSubstr("at byte 0: is cut short"));
  EXPECT_THAT(refusal(bytes("")), HasSubstr("ends with other than one value"));
  EXPECT_THAT(refusal(bytes("(")), HasSubstr("ends with other than one value"));
  EXPECT_THAT(refusal(bytes("NN")), HasSubstr("ends with other than one value"));
  EXPECT_THAT(refusal(bytes("X\xff\xff\xff\xff")), HasSubstr("cut short"));
  EXPECT_THAT(refusal(bytes("t")), HasSubstr("no mark"));
  EXPECT_THAT(refusal(bytes("a")), HasSubstr("where there is none"));
  EXPECT_THAT(refusal(bytes("Na")), HasSubstr("where there is none"));
  EXPECT_THAT(refusal(bytes("NNa")), HasSubstr("no list"));
  EXPECT_THAT(refusal(bytes("}(Nu")), HasSubstr("without a value"));
  EXPECT_THAT(refusal(bytes("h\x05")), HasSubstr("never remembered"));
  EXPECT_THAT(refusal(bytes("i")), HasSubstr("code 105"));
  EXPECT_THAT(refusal("\x80\x06N."), HasSubstr("newer than 5"));
}

TEST(Pickle, RejectsUnboundedExpansion) {
  EXPECT_THAT(refusal(bytes("]q\x01h\x01"
                            "a")),
              HasSubstr("nested deeper"));
  std::string doubling = "]";
  for (int i = 0; i < 60; ++i) doubling += "q\x01h\x01\x86";
  EXPECT_THAT(refusal(bytes(doubling), {.nodes = 10'000}), HasSubstr("more values"));
  std::string repeated = "(" + remembered(std::string(255, 'x'));
  for (int i = 0; i < 100; ++i) repeated += "h\x01";
  EXPECT_THAT(refusal(bytes(repeated + "t"), {.text_bytes = 10'000}), HasSubstr("bytes of text"));
}

TEST(Pickle, RejectsUnboundedCopies) {
  std::string calls = "(" + remembered(std::string(255, 'x'));
  for (int i = 0; i < 100; ++i) calls += "c_codecs\nencode\nh\x01U\x06latin1\x86R";
  EXPECT_THAT(refusal(bytes(calls + "t"), {.text_bytes = 10'000}), HasSubstr("copy too much"));
}

Object an_object() {
  Object object;
  object.storages["a"] = {std::string(24, '\x01'), "cuda:1"};
  object.storages["b"] = {"\x01\x02\x03\x04", "cpu"};
  object.value = List{{TensorRef{"a", "bfloat16", 12, 2, {2, 3}, {5, 1}, true},
                       TensorRef{"b", "uint16", 2, 0, {2}, {1}, false},
                       Bytes{std::string("\x00\x7f\x80\xff", 4)}, "text"}};
  return object;
}

TEST(PickleObject, HoldsTheBytesOfItsTensors) {
  const Result<Object> read = read_object(write_object(an_object()));
  ASSERT_TRUE(read.ok()) << read.error().text;
  Object wanted = an_object();
  auto& items = wanted.value.get_if<List>()->items;
  items[0].get_if<TensorRef>()->storage = "0";
  items[1].get_if<TensorRef>()->storage = "1";
  EXPECT_EQ(read->value, wanted.value);
  EXPECT_EQ(read->storages.at("0").bytes, std::string(24, '\x01'));
  EXPECT_EQ(read->storages.at("0").location, "cuda:1");
  EXPECT_EQ(read->storages.at("1").bytes, "\x01\x02\x03\x04");
  EXPECT_THAT(refusal(write_object(an_object())), HasSubstr("stand in a pickle that has none"));
}

std::string object_refusal(const std::string& pickle, const ReadLimits& limits = {}) {
  const Result<Object> object = read_object(pickle, limits);
  return object ? "read" : object.error().text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(PickleObject, RejectsStoragesThatAreNone) {
  const std::string good = write_object(an_object());
  EXPECT_EQ(object_refusal(good), "read");
  EXPECT_THAT(object_refusal(write(some_tensor())), HasSubstr("outside of the object"));
  EXPECT_THAT(object_refusal(good + "N"), HasSubstr("does not end there"));
  EXPECT_THAT(object_refusal(replaced(good, "\xfc\x9c\x46", "\xfc\x9c\x47")),
              HasSubstr("of an unknown format"));
  EXPECT_THAT(object_refusal(replaced(good, "little_endian", "little_endiam")),
              HasSubstr("not little endian"));
  EXPECT_THAT(object_refusal(replaced(good, "K\x0cNtQ", "K\x0dNtQ")), HasSubstr("another length"));
  EXPECT_THAT(object_refusal(replaced(good, "BFloat16Storage", "BFloat16Storags")),
              HasSubstr("names torch.BFloat16Storags"));
  EXPECT_THAT(object_refusal("\x80\x04"
                             "ctorch.storage\n_load_from_bytes\nC\x01x\x85R."),
              HasSubstr("have a pickle"));
  EXPECT_THAT(object_refusal("\x80\x04\x8f."), HasSubstr("has a set"));
  EXPECT_THAT(object_refusal("\x80\x04"
                             "cdatetime\ndatetime\nC\x01x\x85R."),
              HasSubstr("names datetime.datetime"));
}

TEST(PickleObject, RejectsHostileBytes) {
  const std::string huge(8, '\xff');
  for (const char* code : {"\x8d", "\x8e", "\x96"}) {
    EXPECT_THAT(object_refusal(bytes(code + huge)), HasSubstr("at byte 11: is cut short"));
  }
  EXPECT_THAT(object_refusal(bytes("\x8b\xff\xff\xff\xff")), HasSubstr("of negative size"));
  EXPECT_THAT(object_refusal(bytes("F1.0\n")), HasSubstr("code 70"));
  const size_t levels = 200'000;
  EXPECT_THAT(object_refusal(bytes(std::string(levels, ']') + std::string(levels - 1, 'a'))),
              HasSubstr("is nested deeper than 100"));
  const std::string good = write_object(an_object());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(object_refusal(good.substr(0, size)), HasSubstr("is cut short")) << size;
  }
}

// torch.empty(5, dtype=torch.uint8)[:4].view(torch.uint16) has such a storage.
TEST(PickleObject, ReadsAStorageWhoseLastElementIsNotWhole) {
  Object object;
  object.storages["0"] = {"\x01\x02\x03\x04", "cpu"};
  object.value = TensorRef{"0", "uint16", 2, 0, {2}, {1}, false};
  const std::string even = write_object(object);
  const std::string numel("\x04\0\0\0\0\0\0\0", 8);
  std::string odd = replaced(replaced(even, "K\x04NtQ", "K\x05NtQ"), numel + "\x01\x02\x03\x04",
                             "\x05" + numel.substr(1) + "\x01\x02\x03\x04\x05");
  ++odd[odd.find("_load_from_bytes\n(B") + sizeof "_load_from_bytes\n(B" - 1];
  const Result<Object> read = read_object(odd);
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_EQ(read->storages.at("0").bytes, "\x01\x02\x03\x04\x05");
  EXPECT_EQ(write_object(*read), even);
}

// One storage that is called often would be copied each time.
TEST(PickleObject, RejectsUnboundedCopiesOfAStorage) {
  Object object;
  object.storages["a"] = {std::string(200, 'x'), "cpu"};
  object.value = TensorRef{"a", "uint8", 200, 0, {200}, {1}, false};
  const std::string one = write_object(object);
  std::string calls = "\x80\x04(";
  for (int i = 0; i < 100; ++i) calls += one.substr(2, one.size() - 3);
  EXPECT_THAT(object_refusal(calls + "t.", {.text_bytes = 10'000}), HasSubstr("copy too much"));
}

}  // namespace
}  // namespace cpprun::pickle

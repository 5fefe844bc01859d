// Headers of safetensors files: what Hugging Face's library writes, and malformed ones.
#include "snapshot_files/archive/safetensors_header.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/limits/snapshots.hpp"

namespace cpprun::archive {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwo = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
                             R"("a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})";

// `data`: the number of bytes behind the header.
Result<SafetensorsHeader> parse(const std::string& json, uint64_t data) {
  return parse_safetensors_header(json, kSafetensorsLengthBytes + json.size() + data);
}

std::string refusal(const std::string& json, uint64_t data) {
  const auto header = parse(json, data);
  return header ? "" : header.error().text;
}

std::string one(const std::string& fields) { return R"({"x":{)" + fields + "}}"; }

TEST(SafetensorsHeader, NamesTensorsInTheOrderOfTheirOffsets) {
  const auto header = parse(kTwo, 20);
  ASSERT_TRUE(header.ok()) << header.error().text;
  ASSERT_EQ(header->tensors.size(), 2U);
  const uint64_t front = kSafetensorsLengthBytes + std::strlen(kTwo);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].offset, front);
  EXPECT_TRUE(header->tensors[0].shape.empty());
  EXPECT_EQ(header->tensors[1].dtype, "bfloat16");
  EXPECT_EQ(header->tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header->tensors[1].offset, front + 8);
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, ChecksTheLength) {
  const auto length = [](uint64_t bytes, uint64_t file) {
    std::byte first[kSafetensorsLengthBytes];
    std::memcpy(first, &bytes, sizeof bytes);
    return safetensors_header_bytes(first, file);
  };
  EXPECT_EQ(*length(100, 108), 100U);
  EXPECT_THAT(length(101, 108).error().text, HasSubstr("ends within its header"));
  EXPECT_THAT(length(UINT64_MAX, 108).error().text, HasSubstr("at most 100000000"));
  EXPECT_TRUE(length(limits::kSafetensorsHeaderBytes, 1 << 30).ok());
  EXPECT_FALSE(length(limits::kSafetensorsHeaderBytes + 1, 1 << 30).ok());
  EXPECT_FALSE(safetensors_header_bytes({}, 4).ok());
}

TEST(SafetensorsHeader, RefusesPositionsThatDoNotFit) {
  const std::string f32 = R"("dtype":"F32","shape":[2],"data_offsets":)";
  EXPECT_EQ(refusal(one(f32 + "[0,8]"), 8), "");
  EXPECT_THAT(refusal(one(f32 + "[0,8]"), 7), HasSubstr("'x' lies from byte 0 to 8"));
  EXPECT_THAT(refusal(one(f32 + "[8,0]"), 8), HasSubstr("'x' lies from byte 8 to 0"));
  EXPECT_THAT(refusal(one(f32 + "[0,4]"), 4), HasSubstr("does not fit its shape"));
  EXPECT_THAT(refusal(one(f32 + "[-8,0]"), 8), HasSubstr("has no data_offsets"));
  EXPECT_THAT(refusal(one(f32 + "[0,8]"), 9), HasSubstr("1 bytes of the data belong to no tensor"));
  EXPECT_THAT(refusal(one(f32 + "[1,9]"), 9), HasSubstr("follows a gap"));
  EXPECT_THAT(refusal(one(f32 + "[0,18446744073709551615]"), 8), HasSubstr("lies from byte"));
  const std::string overlapping = R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                  R"("y":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})";
  EXPECT_THAT(refusal(overlapping, 6), HasSubstr("'y' overlaps another"));
}

TEST(SafetensorsHeader, RefusesShapesThatOverflow) {
  const std::string rest = R"(],"data_offsets":[0,0])";
  const std::string big = "4294967296,4294967296";
  EXPECT_THAT(refusal(one(R"("dtype":"U8","shape":[)" + big + rest), 0),
              HasSubstr("more elements than memory can hold"));
  EXPECT_THAT(refusal(one(R"("dtype":"F64","shape":[4611686018427387904)" + rest), 0),
              HasSubstr("does not fit its shape"));
  EXPECT_THAT(refusal(one(R"("dtype":"U8","shape":[-1)" + rest), 0), HasSubstr("is no count"));
  EXPECT_THAT(refusal(one(R"("dtype":"U8","shape":[1.5)" + rest), 0), HasSubstr("is no count"));
  EXPECT_EQ(refusal(one(R"("dtype":"U8","shape":[0)" + rest), 0), "");
}

TEST(SafetensorsHeader, RefusesOtherJson) {
  for (const char* json : {"", "[]", "{", "7", R"({"x":{"a":{"b":{"c":{}}}}})"}) {
    EXPECT_THAT(refusal(json, 0), HasSubstr("no JSON object of tensors")) << json;
  }
  EXPECT_THAT(refusal(R"({"x":3})", 0), HasSubstr("'x' has no dtype"));
  EXPECT_THAT(refusal(one(R"("dtype":"U8")"), 0), HasSubstr("'x' has no shape"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"format":1}})", 0), HasSubstr("__metadata__"));
  const std::string twice = R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_THAT(refusal(twice, 1), HasSubstr("'x' stands in the header twice"));
}

// So that one such tensor does not make the others unreadable.
TEST(SafetensorsHeader, KeepsTensorsOfUnknownDtypes) {
  const auto header = parse(one(R"("dtype":"F4","shape":[2],"data_offsets":[0,1])"), 1);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->tensors[0].dtype, "");
  EXPECT_EQ(header->tensors[0].dtype_in_file, "F4");
}

TEST(SafetensorsHeader, ReadsWhatItWrites) {
  std::vector<SafetensorsEntry> tensors{
      {.name = "a", .dtype = "float32", .shape = {2, 2}, .bytes = 16},
      {.name = "none", .dtype = "int64", .shape = {0, 3}, .bytes = 0},
      {.name = "b", .dtype = "bool", .shape = {5}, .bytes = 5}};
  const auto front = encode_safetensors_header(tensors, {{"format", "pt"}});
  ASSERT_TRUE(front.ok());
  EXPECT_EQ(front->size() % 8, 0U);
  EXPECT_EQ(tensors[2].offset, front->size() + 16);
  const auto header =
      parse_safetensors_header(front->substr(kSafetensorsLengthBytes), front->size() + 21);
  ASSERT_TRUE(header.ok()) << header.error().text;
  ASSERT_EQ(header->tensors.size(), 3U);
  EXPECT_EQ(header->tensors[2].name, "b");
  EXPECT_EQ(header->tensors[2].offset, tensors[2].offset);
}

TEST(SafetensorsIndex, NamesTheFileOfEachTensor) {
  const auto files = parse_safetensors_index(
      R"({"metadata":{"total_size":8},)"
      R"("weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->at("b"), "model-2.safetensors");
  for (const char* file : {"\"../x\"", "\"/etc/passwd\"", "\"..\"", "\"\"", "3", "\"a/b\""}) {
    const auto wrong = parse_safetensors_index(R"({"weight_map":{"a":)" + std::string(file) + "}}");
    ASSERT_FALSE(wrong.ok()) << file;
    EXPECT_THAT(wrong.error().text, HasSubstr("no file of the same folder"));
  }
  EXPECT_FALSE(parse_safetensors_index("{}").ok());
}

}  // namespace
}  // namespace cpprun::archive

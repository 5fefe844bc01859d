// `.metadata` of torch.distributed.checkpoint: what its writers pickle, and malformed ones.
// tests/sdk/snapshot/test_distributed_checkpoint.py reads files of the real one.
#include "snapshot_files/archive/dcp_metadata.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "snapshot_files/archive/slice_source.hpp"
#include "snapshot_files/pickle/nodes.hpp"

namespace cpprun::archive::dcp_test {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<int64_t>;

const std::string kModule = "torch.distributed.checkpoint.metadata\n";

// Opcodes of Python's pickle, with which these functions build values.
std::string text(const std::string& value) {
  return std::string("\x8c") + static_cast<char>(value.size()) + value;
}
std::string number(int64_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return "\x8a\x08" + bytes;
}
std::string dict(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string all;
  for (const auto& [key, value] : pairs) all += key + value;
  return "}(" + all + "u";
}
std::string list(const std::vector<std::string>& items) {
  std::string all;
  for (const std::string& item : items) all += item;
  return "](" + all + "e";
}
std::string size(const Numbers& numbers) {
  std::string all;
  for (const int64_t each : numbers) all += number(each);
  return "ctorch\nSize\n(" + all + "t\x85R";
}
std::string object(const std::string& name, const std::string& state) {
  return "c" + kModule + name + "\n)\x81" + state + "b";
}
std::string attributes(const std::string& name,
                       const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::pair<std::string, std::string>> named;
  for (const auto& [key, value] : pairs) named.emplace_back(text(key), value);
  return object(name, dict(named));
}

const std::string kEnum = "c" + kModule + "_MEM_FORMAT_ENCODING\n";
const std::string kLayout = "ctorch.serialization\n_get_layout\n" + text("torch.strided") + "\x85R";

// As torch 2.11 with Python 3.11 pickles it; `more`: further fields.
std::string properties(const std::string& dtype = "float32", const std::string& more = "") {
  const std::string format =
      "cbuiltins\ngetattr\n" + kEnum + text("TORCH_CONTIGUOUS_FORMAT") + "\x86R";
  return object("TensorProperties",
                "(ctorch\n" + dtype + "\n" + kLayout + "\x89" + format + "\x89" + more + "t");
}
std::string chunk(const Numbers& offsets, const Numbers& sizes) {
  return attributes("ChunkStorageMetadata", {{"offsets", size(offsets)}, {"sizes", size(sizes)}});
}
std::string tensor(const Numbers& shape, const std::vector<std::string>& chunks,
                   const std::string& of = properties()) {
  return attributes("TensorStorageMetadata",
                    {{"properties", of}, {"size", size(shape)}, {"chunks", list(chunks)}});
}
// Without offset: of an object.
std::string index(const std::string& name, const std::string& offset = "") {
  std::vector<std::pair<std::string, std::string>> pairs{{"fqn", text(name)}, {"index", "N"}};
  if (!offset.empty()) pairs.emplace_back("offset", offset);
  return attributes("MetadataIndex", pairs);
}
std::string place(const std::string& file, int64_t offset, int64_t bytes,
                  const std::string& transforms = "") {
  std::vector<std::pair<std::string, std::string>> pairs{{text("relative_path"), text(file)},
                                                         {text("offset"), number(offset)},
                                                         {text("length"), number(bytes)}};
  if (!transforms.empty()) pairs.emplace_back(text("transform_descriptors"), transforms);
  return "ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81" + dict(pairs) + "b";
}

using Entries = std::vector<std::pair<std::string, std::string>>;
std::string metadata(const Entries& entries, const Entries& storage_data) {
  Entries named;
  for (const auto& [name, entry] : entries) named.emplace_back(text(name), entry);
  const std::string path = "cpathlib\nPosixPath\n" + text("/") + text("a") + "\x86R";
  const std::string meta = attributes("StorageMeta", {{"checkpoint_id", path}, {"save_id", "N"}});
  return "\x80\x04" +
         attributes("Metadata", {{"state_dict_metadata", dict(named)},
                                 {"planner_data", dict({{text("x"), text("x") + "\x85"}})},
                                 {"storage_data", dict(storage_data)},
                                 {"storage_meta", meta},
                                 {"version", "N"}}) +
         ".";
}

// A tensor 'x' of these chunks, each in so many bytes of a file of its own.
std::string in_chunks(const Numbers& shape, const std::vector<std::pair<Numbers, Numbers>>& boxes,
                      int64_t bytes = 1000) {
  std::vector<std::string> chunks;
  Entries places;
  for (const auto& [offsets, sizes] : boxes) {
    chunks.push_back(chunk(offsets, sizes));
    places.emplace_back(index("x", size(offsets)),
                        place("__" + std::to_string(places.size()) + "_0.distcp", 0, bytes));
  }
  return metadata({{"x", tensor(shape, chunks)}}, places);
}

// A tensor 'x' of two elements.
std::string at_place(const std::string& where) {
  return metadata({{"x", tensor({2}, {chunk({0}, {2})})}}, {{index("x", size({0})), where}});
}

std::string refusal(const std::string& bytes) {
  const auto parsed = parse_dcp_metadata(bytes);
  return parsed ? "" : parsed.error().text;
}

TEST(DcpMetadata, HasTensorsAndObjects) {
  const auto parsed = parse_dcp_metadata(metadata(
      {{"model.w",
        tensor({3, 2}, {chunk({0, 0}, {2, 2}), chunk({2, 0}, {1, 2}), chunk({3, 0}, {0, 2})},
               properties("bfloat16"))},
       {"lr", object("BytesStorageMetadata", "}")}},
      {{index("model.w", size({0, 0})), place("__0_0.distcp", 7, 1000)},
       {index("model.w", size({2, 0})), place("__1_0.distcp", 0, 900)},
       {index("lr"), place("__0_0.distcp", 1007, 5)}}));
  ASSERT_TRUE(parsed.ok()) << parsed.error().text;
  const DcpTensor& weight = parsed->tensors.at("model.w");
  EXPECT_EQ(weight.dtype, "bfloat16");
  EXPECT_EQ(weight.shape, (Numbers{3, 2}));
  ASSERT_EQ(weight.chunks.size(), 2U);  // not the empty one
  EXPECT_EQ(weight.chunks[1].offsets, (Numbers{2, 0}));
  EXPECT_EQ(weight.chunks[1].sizes, (Numbers{1, 2}));
  EXPECT_EQ(weight.chunks[1].place.file, "__1_0.distcp");
  EXPECT_EQ(weight.chunks[0].place.offset, 7U);
  EXPECT_EQ(weight.chunks[0].place.bytes, 1000U);
  ASSERT_EQ(parsed->objects.size(), 1U);
  EXPECT_EQ(parsed->objects.at("lr").offset, 1007U);
}

TEST(DcpMetadata, ReadsTheFormsOfOtherVersions) {
  const auto one = [](const std::string& of) {
    return metadata({{"x", tensor({}, {chunk({}, {})}, of)}},
                    {{index("x", size({})), place("__0_0.distcp", 0, 1000)}});
  };
  EXPECT_EQ(refusal(one(properties())), "");
  EXPECT_EQ(refusal(one(properties("float32", number(1) + "\x85"))), "");  // with strides
  const std::string by_value = "(ctorch\nfloat32\n" + kLayout + "\x89" + kEnum + number(0) +
                               "\x85R\x89t";  // other versions of Python
  EXPECT_EQ(refusal(one(object("TensorProperties", by_value))), "");
  EXPECT_EQ(refusal(one("ctorch.distributed._shard.sharded_tensor.metadata\nTensorProperties\n)\x81"
                        "(ctorch\nfloat32\n\x89tb")),
            "");  // torch before 2.3
  // A class without attributes has no state.
  EXPECT_EQ(refusal(metadata({{"lr", "c" + kModule + "BytesStorageMetadata\n)\x81"}},
                             {{index("lr"), place("__0_0.distcp", 0, 1)}})),
            "");
}

TEST(DcpMetadata, ChunksMayFormAnyGrid) {
  EXPECT_EQ(refusal(in_chunks({2, 4}, {{{0, 0}, {2, 4}}})), "");
  EXPECT_EQ(refusal(in_chunks({4}, {{{2}, {2}}, {{0}, {2}}})), "");
  EXPECT_EQ(refusal(in_chunks({2, 2}, {{{0, 0}, {1, 1}}, {{0, 1}, {1, 1}}, {{1, 0}, {1, 2}}})), "");
  // Five boxes around a middle, which no sequence of cuts makes.
  EXPECT_EQ(refusal(in_chunks({3, 3}, {{{0, 0}, {1, 2}},
                                       {{0, 2}, {2, 1}},
                                       {{2, 1}, {1, 2}},
                                       {{1, 0}, {2, 1}},
                                       {{1, 1}, {1, 1}}})),
            "");
  EXPECT_EQ(refusal(in_chunks({0, 4}, {})), "");
  EXPECT_EQ(refusal(in_chunks({0, 4}, {{{0, 0}, {0, 4}}})), "");
}

TEST(DcpMetadata, RefusesChunksThatDoNotCoverATensorOnce) {
  const auto two = [](Numbers second, Numbers sizes) {
    return refusal(in_chunks({4, 2}, {{{0, 0}, {2, 2}}, {std::move(second), std::move(sizes)}}));
  };
  EXPECT_EQ(two({2, 0}, {2, 2}), "");
  EXPECT_THAT(two({2, 0}, {1, 2}), HasSubstr("tensor 'x' has 8 elements, but its chunks have 6"));
  EXPECT_THAT(two({1, 0}, {3, 2}), HasSubstr("has 8 elements, but its chunks have 10"));
  EXPECT_THAT(two({1, 0}, {2, 2}), HasSubstr("chunks that overlap, and elements in none"));
  EXPECT_THAT(two({3, 0}, {2, 2}), HasSubstr("a chunk that is not within its shape"));
  EXPECT_THAT(two({INT64_MAX, 0}, {2, 2}), HasSubstr("not within its shape"));
  EXPECT_THAT(two({2, 0}, {-1, 2}), HasSubstr("a chunk without offsets and sizes"));
  EXPECT_THAT(two({2}, {2}), HasSubstr("not within its shape"));
  EXPECT_THAT(refusal(in_chunks({4}, {})), HasSubstr("has 4 elements, but its chunks have 0"));
  // As many elements and an even number of chunks everywhere but in the corners.
  EXPECT_THAT(refusal(in_chunks({2, 2}, {{{0, 0}, {1, 2}}, {{0, 1}, {2, 1}}})),
              HasSubstr("chunks that overlap, and elements in none"));
  const std::vector<int64_t> wide(9, 2), none(9, 0), half(9, 1);
  EXPECT_THAT(refusal(in_chunks(wide, {{none, half}})), HasSubstr("has 512 elements"));
  std::vector<std::pair<Numbers, Numbers>> all;
  for (int mask = 0; mask < 512; ++mask) {
    Numbers corner;
    for (int i = 0; i < 9; ++i) corner.push_back(mask >> i & 1);
    all.emplace_back(corner, half);
  }
  EXPECT_THAT(refusal(in_chunks(wide, all)), HasSubstr("split along more than 8 dimensions"));
}

TEST(DcpMetadata, RefusesSizesThatOverflow) {
  EXPECT_THAT(refusal(in_chunks({INT64_MAX, 2}, {})), HasSubstr("more elements than memory"));
  EXPECT_THAT(refusal(in_chunks({INT64_MAX / 2}, {})), HasSubstr("more elements than memory"));
  EXPECT_THAT(refusal(in_chunks({-1}, {})), HasSubstr("'x' has no shape"));
  EXPECT_THAT(refusal(in_chunks(Numbers(65, 1), {})), HasSubstr("'x' has no shape"));
  EXPECT_THAT(refusal(in_chunks({1 << 20}, {{{0}, {1 << 20}}})),
              HasSubstr("a chunk of 1048576 elements in 1000 bytes"));
}

TEST(DcpMetadata, RefusesPlacesOutsideOfTheFolder) {
  EXPECT_EQ(refusal(at_place(place("__0_0.distcp", 0, 1000))), "");
  for (const char* file : {"../x", "/etc/passwd", "..", ".", "", "a/b"}) {
    EXPECT_THAT(refusal(at_place(place(file, 0, 1000))),
                HasSubstr("which is no file of the checkpoint's folder"))
        << file;
  }
  EXPECT_THAT(refusal(at_place(place(std::string("a\0b", 3), 0, 1000))), HasSubstr("no file of"));
  EXPECT_THAT(refusal(at_place(place("a", -1, 1000))), HasSubstr("'x' has no place"));
  EXPECT_THAT(refusal(at_place(place("a", 0, -1))), HasSubstr("'x' has no place"));
  EXPECT_THAT(refusal(at_place("N")), HasSubstr("'x' has no place"));
  // A long tensor needs a long file.
  const std::string twice = metadata(
      {{"x", tensor({4}, {chunk({0}, {2}), chunk({2}, {2})})}},
      {{index("x", size({0})), place("a", 0, 100)}, {index("x", size({2})), place("a", 99, 100)}});
  EXPECT_THAT(refusal(twice), HasSubstr("tensor 'x' has two chunks at one place of a"));
}

TEST(DcpMetadata, RefusesWhatExtensionsHaveChanged) {
  EXPECT_EQ(refusal(at_place(place("a", 0, 1000, "N"))), "");
  EXPECT_EQ(refusal(at_place(place("a", 0, 1000, "]"))), "");
  EXPECT_THAT(refusal(at_place(place("a", 0, 1000, list({text("stream.zstd")})))),
              HasSubstr("'x' was written with extensions (transform_descriptors)"));
}

TEST(DcpMetadata, RefusesEntriesThatAreIncomplete) {
  const std::string good = place("a", 0, 1000);
  EXPECT_THAT(refusal(metadata({{"x", tensor({2}, {chunk({0}, {2})})}}, {})),
              HasSubstr("'x' has a chunk that storage_data lacks"));
  EXPECT_THAT(refusal(metadata({{"lr", object("BytesStorageMetadata", "}")}}, {})),
              HasSubstr("'lr' has no place"));
  EXPECT_THAT(refusal(metadata({{"x", "N"}}, {})), HasSubstr("neither a tensor nor an object"));
  EXPECT_THAT(refusal(metadata({}, {{text("x"), good}})), HasSubstr("names no tensor"));
  EXPECT_THAT(refusal(metadata({}, {{index("x"), good}, {index("x"), good}})), HasSubstr("twice"));
  const std::string scalar = tensor({}, {chunk({}, {})});
  EXPECT_THAT(refusal(metadata({{"x", scalar}, {"x", scalar}}, {{index("x", size({})), good}})),
              HasSubstr("'x' is in it twice"));
  EXPECT_THAT(refusal(metadata({{"x", tensor({}, {}, "N")}}, {})), HasSubstr("'x' has no dtype"));
  EXPECT_THAT(refusal("\x80\x04}."), HasSubstr("no metadata of torch.distributed.checkpoint"));
  EXPECT_THAT(refusal("\x80\x04" + attributes("Metadata", {}) + "."), HasSubstr("no metadata of"));
}

TEST(DcpMetadata, RefusesForeignGlobals) {
  const auto with = [](const std::string& value) { return refusal("\x80\x04" + value + "."); };
  EXPECT_THAT(with("cposix\nsystem\n" + text("ls") + "\x85R"), HasSubstr("names posix.system"));
  EXPECT_THAT(with("cbuiltins\ngetattr\nctorch\nfloat32\n" + text("x") + "\x86R"),
              HasSubstr("builtins.getattr cannot be called so"));
  EXPECT_THAT(with("cbuiltins\ngetattr\n" + kEnum + "N\x86R"), HasSubstr("cannot be called so"));
  EXPECT_THAT(with("c" + kModule + "Metadata\n)R"), HasSubstr("Metadata cannot be called so"));
  EXPECT_THAT(with("ctorch\nSize\n)\x81"), HasSubstr("an object that a checkpoint does not have"));
  EXPECT_THAT(with("c" + kModule + "Metadata\nN\x85\x81"), HasSubstr("an object that"));
  EXPECT_THAT(with("c" + kModule + "Metadata\n)\x81}b}b"),
              HasSubstr("attributes of an object twice"));
  EXPECT_THAT(with("c" + kModule +
                   "Metadata\n)\x81q\x01h\x01"
                   "b"),
              HasSubstr("nested deeper"));
  // Other pickles have no such objects.
  EXPECT_THAT(pickle::read("\x80\x04" + attributes("Metadata", {}) + ".").error().text,
              HasSubstr("names torch.distributed.checkpoint.metadata.Metadata"));
}

TEST(DcpMetadata, RefusesEveryBeginningOfOne) {
  const std::string whole = at_place(place("__0_0.distcp", 0, 1000));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_NE(refusal(whole.substr(0, bytes)), "") << bytes;
  }
  EXPECT_THAT(refusal(whole + "N"), HasSubstr("does not end there"));
}

TEST(DcpMetadata, HasALimitOfMemory) {
  pickle::ReadLimits few = kDcpReadLimits;
  few.made = 1000;
  const std::string whole = at_place(place("__0_0.distcp", 0, 1000));
  EXPECT_TRUE(parse_dcp_metadata(whole, few).ok());
  const std::string many = "\x80\x04(" + std::string(2000, 'N') + "t.";
  EXPECT_THAT(parse_dcp_metadata(many, few).error().text, HasSubstr("has more values than 1000"));
  EXPECT_LE(kDcpReadLimits.made * sizeof(pickle::Node), size_t{6} << 30);
  EXPECT_LE(kDcpReadLimits.nodes * sizeof(pickle::Value), size_t{6} << 30);
}

// Chunks of one element that do not touch have 256 corners each; the others fill up the number of
// elements.
TEST(DcpMetadata, HasALimitOfMemoryForTheCheckOfItsChunks) {
  constexpr size_t kDimensions = 8;
  std::vector<std::pair<Numbers, Numbers>> chunks;
  for (unsigned box = 0; box < 1U << kDimensions; ++box) {
    Numbers at;
    for (size_t i = 0; i < kDimensions; ++i) at.push_back(4 * (box >> i & 1));
    chunks.emplace_back(at, Numbers(kDimensions, 1));
  }
  for (size_t power = kDimensions; power < 3 * kDimensions; ++power) {
    Numbers at(kDimensions, 0), sizes(kDimensions, 1);
    for (size_t i = 0; i < power; ++i) sizes[i % kDimensions] *= 2;
    at[power % kDimensions] = power < 2 * kDimensions ? 3 : 1;  // no two chunks begin at one place
    chunks.emplace_back(at, sizes);
  }
  const std::string many = in_chunks(Numbers(kDimensions, 8), chunks, 1 << 30);
  EXPECT_THAT(refusal(many), HasSubstr("has chunks that overlap, and elements in none"));
  pickle::ReadLimits few = kDcpReadLimits;
  few.made = 50'000;
  EXPECT_THAT(parse_dcp_metadata(many, few).error().text,
              HasSubstr("'x' has chunks with more corners than 50000"));
}

TEST(SliceSource, HasAPartOnly) {
  const std::string text = "0123456789";
  const auto whole = std::make_shared<MemorySource>(bytes_of(text), "whole");
  const SliceSource slice(whole, 2, 5, "slice");
  EXPECT_EQ(*slice.size(), 5U);
  EXPECT_EQ(*slice.read_text(0, 5), "23456");
  EXPECT_EQ(*slice.read_text(4, 1), "6");
  EXPECT_THAT(slice.read_text(4, 2).error().text, HasSubstr("slice ends before"));
  EXPECT_FALSE(slice.read_text(6, 0).ok());
  EXPECT_FALSE(SliceSource(whole, 8, 5, "slice").read_text(0, 5).ok());
}

}  // namespace
}  // namespace cpprun::archive::dcp_test

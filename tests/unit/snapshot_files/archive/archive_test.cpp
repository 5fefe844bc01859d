// Tensor files: their layout, that many writers make the same file as one, and that the reader
// rejects a file that differs anywhere from the written one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <random>
#include <set>
#include <string_view>

#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/archive/safetensors.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/archive/zip_directory.hpp"

namespace cpprun::archive {
namespace {

using pickle::TensorRef;
using testing::HasSubstr;

class Text final : public Output {
 public:
  Status write_at(uint64_t offset, ConstBytes bytes) override {
    text.resize(std::max<size_t>(text.size(), offset + bytes.size()));
    if (!bytes.empty()) std::memcpy(text.data() + offset, bytes.data(), bytes.size());
    return {};
  }
  std::string text;
};

TensorRef tensor(const std::string& storage, const std::string& dtype, int64_t numel) {
  return {storage, dtype, numel, 0, {numel}, {1}, false};
}
// A small, an empty, and a big storage of uneven size.
pickle::Value some_tree() {
  return pickle::Dict{{{"bias", tensor("b", "float32", 3)},
                       {"empty", tensor("e", "int64", 0)},
                       {"weight", tensor("w", "uint8", 70'001)},
                       {"again", tensor("b", "float32", 3)},
                       {"epochs", int64_t{7}}}};
}
std::string bytes_for(const std::string& name) {
  const size_t size = name == "w" ? 70'001 : name == "b" ? 12 : 0;
  std::mt19937 random(static_cast<unsigned>(name[0]));
  std::string bytes(size, '\0');
  std::ranges::generate(bytes, [&random] { return static_cast<char>(random()); });
  return bytes;
}

struct Made {
  std::string text;
  Written written;
};
Made make_file(const pickle::Value& tree = some_tree()) {
  Text out;
  std::map<std::string, std::string> bytes;
  Result<Written> written = write_file(
      out, tree, [&](const std::string& name) { return bytes_of(bytes[name] = bytes_for(name)); });
  EXPECT_TRUE(written.ok());
  return {out.text, *written};
}

Result<TensorFile> open_text(const std::string& text) {
  return TensorFile::open(std::make_shared<MemorySource>(bytes_of(text), "x.pt"));
}
std::string refusal(const std::string& text) {
  Result<TensorFile> file = open_text(text);
  return file ? "opened" : file.error().text;
}
std::string storage_of(const TensorFile& file, const std::string& name) {
  std::string bytes(file.storage_bytes(name), '\0');
  Status read =
      file.read_storage(name, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  return read.ok() ? bytes : "not read";
}

TEST(Crc32, MatchesZip) {
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926U);
  EXPECT_EQ(crc32(bytes_of("6789"), crc32(bytes_of("12345"))), 0xCBF43926U);
  EXPECT_EQ(crc32(ConstBytes(), 0xCBF43926U), 0xCBF43926U);
}

// Long inputs take another code path than short ones, on any processor.
TEST(Crc32, OfLongBytesCombinesTheirPieces) {
  std::string text(70'000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  for (const size_t begin : std::initializer_list<size_t>{0, 1, 63}) {
    for (const size_t size :
         std::initializer_list<size_t>{4095, 4096, 4097, 4351, 4352, 65'536, 69'937}) {
      const std::string_view bytes = std::string_view(text).substr(begin, size);
      uint32_t in_pieces = 7;
      for (size_t i = 0; i < size; i += 1000) {
        in_pieces = crc32(bytes_of(bytes.substr(i, 1000)), in_pieces);
      }
      EXPECT_EQ(crc32(bytes_of(bytes), 7), in_pieces) << begin << ' ' << size;
    }
  }
}

// Bytes beside them stay unchanged, with and without the processor's instructions.
TEST(Crc32, IsComputedWhileCopying) {
  constexpr auto kBeyond = std::byte{0xA5};
  std::string text(300'000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  for (const size_t size : std::initializer_list<size_t>{0, 1, 4097, 262'143, 262'144, 299'937}) {
    for (const size_t off : std::initializer_list<size_t>{0, 64, 1}) {
      alignas(64) static std::array<std::byte, 300'200> to;
      to.fill(kBeyond);
      const ConstBytes bytes = bytes_of(std::string_view(text).substr(off, size));
      const std::optional<uint32_t> crc = copy_crc32(to.data() + off, bytes);
      const bool can = copy_crc32(to.data(), {}).has_value();
      EXPECT_EQ(crc.has_value(), can && off % 64 == 0) << size << ' ' << off;
      const size_t copied = crc ? bytes.size() : 0;
      EXPECT_EQ(crc.value_or(crc32(bytes)), crc32(bytes)) << size << ' ' << off;
      EXPECT_EQ(std::memcmp(to.data() + off, bytes.data(), copied), 0) << size;
      EXPECT_TRUE(std::all_of(to.begin(), to.begin() + off, [](auto b) { return b == kBeyond; }));
      EXPECT_TRUE(
          std::all_of(to.begin() + off + copied, to.end(), [](auto b) { return b == kBeyond; }))
          << size << ' ' << off;
    }
  }
}

TEST(Crc32, CombinesAtAnyCut) {
  const std::string text = bytes_for("w");
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{4096}, size_t{69'999}, text.size()}) {
    const uint32_t first = crc32(bytes_of(text.substr(0, cut)));
    const uint32_t second = crc32(bytes_of(text.substr(cut)));
    EXPECT_EQ(crc32_combine(first, second, text.size() - cut), crc32(bytes_of(text))) << cut;
  }
}

TEST(Archive, ReadsAWrittenArchive) {
  const Made made = make_file();
  EXPECT_EQ(made.written.bytes, made.text.size());
  EXPECT_EQ(made.written.crc32, crc32(bytes_of(made.text)));
  Result<TensorFile> file = open_text(made.text);
  ASSERT_TRUE(file.ok()) << file.error().text;
  EXPECT_EQ(file->value(), some_tree());
  EXPECT_TRUE(file->verify().ok());
  for (const std::string name : {"b", "e", "w"}) {
    EXPECT_EQ(storage_of(*file, name), bytes_for(name)) << name;
    EXPECT_EQ(file->storage_crc32(name), crc32(bytes_of(bytes_for(name))));
  }
  std::string part(100, '\0');
  ASSERT_TRUE(file->read_part("w", 5'000, std::as_writable_bytes(std::span(part))).ok());
  EXPECT_EQ(part, bytes_for("w").substr(5'000, 100));
}

TEST(Archive, LargeStoragesHaveTheirOwnBlocks) {
  const Plan plan({{"s", 10}, {"big", 70'000}, {"t", 0}, {"bigger", 1'000'000}});
  ASSERT_EQ(plan.places().size(), 4U);
  EXPECT_EQ(plan.places()[0].name, "big");
  EXPECT_EQ(plan.places()[1].name, "bigger");
  uint64_t end = 0;
  for (const Place& place : plan.places()) {
    EXPECT_GE(place.header_at, end);
    EXPECT_EQ(place.data_at % (place.is_big() ? kBlock : 64), 0U);
    EXPECT_TRUE(!place.is_big() || place.header_at % kBlock == 0);
    EXPECT_EQ(plan.header(place, 0).size(), place.data_at - place.header_at);
    end = place.data_at + place.bytes;
  }
  const Place& first_small = plan.places()[2];
  EXPECT_EQ(first_small.header_at % kBlock, 0U);
  EXPECT_EQ(plan.tail_at(), end);
  EXPECT_EQ(plan.find("t")->bytes, 0U);
  EXPECT_EQ(plan.find("u"), nullptr);
}

TEST(Archive, ManyWritersInAnyOrderMakeTheSameFile) {
  const Made made = make_file();
  const Plan plan(storages_of(some_tree()));
  Text out;
  out.text.assign(made.text.size() - 5, '\0');
  const std::string big = bytes_for("w"), small = bytes_for("b");
  const Place& place = *plan.find("w");
  const auto last = *write_part(out, place, kBlock * 3, bytes_of(big).subspan(kBlock * 3));
  const auto b = *write_part(out, *plan.find("b"), 0, bytes_of(small));
  const auto first = *write_part(out, place, 0, bytes_of(big).first(kBlock * 3));
  const uint32_t w = crc32_combine(first, last, big.size() - kBlock * 3);
  std::vector<uint32_t> crc32s;
  for (const Place& each : plan.places()) {
    crc32s.push_back(each.name == "w" ? w : each.name == "b" ? b : 0);
  }
  Result<Written> written = write_rest(out, plan, some_tree(), crc32s);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(out.text, made.text);
  EXPECT_EQ(written->crc32, made.written.crc32);
}

// With and without a known crc32, which decides what is written at once.
TEST(Archive, EachWriterPutsTheHeadersOfItsWholeStorages) {
  const Made made = make_file();
  const Plan plan(storages_of(some_tree()));
  const std::string big = bytes_for("w"), small = bytes_for("b");
  const auto known = [](std::string_view text) {
    return Content{bytes_of(text), crc32(bytes_of(text))};
  };
  const std::string_view first = std::string_view(big).substr(0, kBlock * 3);
  const std::string_view last = std::string_view(big).substr(kBlock * 3);
  for (const bool is_known : {true, false}) {
    const auto content = [&](std::string_view text) {
      return is_known ? known(text) : Content{bytes_of(text)};
    };
    Text out;
    const std::vector<Part> one{{plan.find("b"), 0, content(small)},
                                {plan.find("e"), 0, content("")},
                                {plan.find("w"), kBlock * 3, content(last)}};
    const std::vector<Part> other{{plan.find("w"), 0, content(first)}};
    const auto of_one = *write_parts(out, plan, one), of_other = *write_parts(out, plan, other);
    EXPECT_THAT(of_one, testing::ElementsAre(crc32(bytes_of(small)), 0, crc32(bytes_of(last))));
    const uint32_t w = crc32_combine(of_other[0], of_one[2], last.size());
    std::vector<uint32_t> crc32s;
    for (const Place& each : plan.places()) {
      crc32s.push_back(each.name == "w" ? w : each.name == "b" ? of_one[0] : 0);
    }
    const std::set<std::string_view> split{"w"};
    const Result<Written> written = write_rest(out, plan, some_tree(), crc32s, &split);
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(out.text, made.text);
    EXPECT_EQ(written->crc32, made.written.crc32);
  }
}

// An output that counts its calls.
class Counted final : public Output {
 public:
  Status write_at(uint64_t offset, ConstBytes bytes) override {
    ++single;
    return text.write_at(offset, bytes);
  }
  Status write_all(std::span<const Piece> pieces) override {
    ++together;
    EXPECT_TRUE(std::ranges::is_sorted(pieces, {}, &Piece::offset));
    return text.write_all(pieces);
  }
  int single = 0, together = 0;
  Text text;
};

TEST(Archive, AWholeFileIsWrittenTogether) {
  const Made made = make_file();
  for (const bool is_known : {true, false}) {
    std::map<std::string, std::string> bytes;
    Counted out;
    const auto written = write_file(out, some_tree(), [&](const std::string& name) {
      const std::string& of_name = bytes[name] = bytes_for(name);
      const auto crc = is_known ? std::optional(crc32(bytes_of(of_name))) : std::nullopt;
      return Content{bytes_of(of_name), crc};
    });
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(out.text.text, made.text);
    EXPECT_EQ(written->crc32, made.written.crc32);
    EXPECT_EQ(out.together, 1);
    EXPECT_EQ(out.single, is_known ? 0 : 1) << "the big storage";
  }
}

// Every relevant bit is checked; the others are bits that no reader uses (times, versions,
// padding).
TEST(Archive, DetectsAnyHarmfulDamage) {
  const Made made = make_file(pickle::Dict{{{"b", tensor("b", "float32", 3)}, {"n", int64_t{5}}}});
  const Result<TensorFile> whole = open_text(made.text);
  size_t noticed = 0;
  for (size_t at = 0; at < made.text.size(); ++at) {
    std::string damaged = made.text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Result<TensorFile> file = open_text(damaged);
    if (!file || !file->verify().ok()) {
      ++noticed;
      continue;
    }
    EXPECT_EQ(file->value(), whole->value()) << at;
    EXPECT_EQ(storage_of(*file, "b"), bytes_for("b")) << at;
  }
  EXPECT_GT(noticed, made.text.size() / 4);
}

TEST(Archive, RejectsAFileCutAnywhere) {
  const Made made = make_file(pickle::Dict{{{"b", tensor("b", "float32", 3)}}});
  for (size_t bytes = 0; bytes < made.text.size(); ++bytes) {
    EXPECT_THAT(refusal(made.text.substr(0, bytes)), HasSubstr("x.pt is no whole tensor file"));
  }
  EXPECT_THAT(refusal(made.text.substr(0, 300)), HasSubstr("cut short"));
}

TEST(Archive, NamesDamagedStoragesWithTheCure) {
  Made made = make_file();
  const Plan plan(storages_of(some_tree()));
  made.text[plan.find("w")->data_at + 66'000] ^= 1;
  Result<TensorFile> file = open_text(made.text);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(storage_of(*file, "b"), bytes_for("b"));
  EXPECT_EQ(storage_of(*file, "w"), "not read");
  EXPECT_THAT(file->verify().error().text, HasSubstr("'data/w'"));
  EXPECT_THAT(file->verify().error().text, HasSubstr("older snapshot"));
}

// A source that is mostly zeros: a file that would not fit in memory.
class Sparse final : public Source, public Output {
 public:
  const std::string& name() const override { return name_; }
  Result<uint64_t> size() const override { return end_; }
  Status write_at(uint64_t offset, ConstBytes bytes) override {
    pieces_[offset] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    end_ = std::max<uint64_t>(end_, offset + bytes.size());
    return {};
  }
  Status read_at(uint64_t offset, Bytes into) const override {
    std::ranges::fill(into, std::byte{0});
    auto piece = pieces_.upper_bound(offset);
    if (piece != pieces_.begin()) --piece;
    for (; piece != pieces_.end() && piece->first < offset + into.size(); ++piece) {
      const auto& [at, text] = *piece;
      const uint64_t from = std::max(at, offset);
      const uint64_t to = std::min(at + text.size(), offset + into.size());
      if (from < to) std::memcpy(&into[from - offset], &text[from - at], to - from);
    }
    return {};
  }

 private:
  const std::string name_ = "sparse.pt";
  std::map<uint64_t, std::string> pieces_;
  uint64_t end_ = 0;
};

TEST(Archive, WritesAndReadsMoreThanFourGigabytes) {
  constexpr int64_t kHuge = (int64_t{5} << 30) + 3;
  const pickle::Value tree(pickle::Dict{{{"huge", tensor("0", "uint8", kHuge)},
                                         {"next", tensor("1", "uint8", kHuge)},
                                         {"small", tensor("2", "uint8", 4)}}});
  const Plan plan(storages_of(tree));
  auto file = std::make_shared<Sparse>();
  ASSERT_TRUE(write_part(*file, *plan.find("2"), 0, bytes_of("abcd")).ok());
  const std::vector<uint32_t> crc32s{0, 0, crc32(bytes_of("abcd"))};
  Result<Written> written = write_rest(*file, plan, tree, crc32s);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->bytes, *file->size());
  Result<TensorFile> opened = TensorFile::open(file);
  ASSERT_TRUE(opened.ok()) << opened.error().text;
  EXPECT_EQ(opened->value(), tree);
  EXPECT_EQ(opened->storage_bytes("1"), static_cast<uint64_t>(kHuge));
  EXPECT_EQ(storage_of(*opened, "2"), "abcd");
}

TEST(Archive, SupportsMoreRecordsThanAShortDirectoryCounts) {
  std::vector<StorageSize> storages(65'600);
  for (size_t i = 0; i < storages.size(); ++i) storages[i].name = std::to_string(i);
  const Plan plan(storages);
  const std::string tail = plan.tail("N.", std::vector<uint32_t>(storages.size()));
  Sparse file;
  ASSERT_TRUE(file.write_at(plan.tail_at(), bytes_of(tail)).ok());
  Result<ZipDirectory> directory = ZipDirectory::read(file);
  ASSERT_TRUE(directory.ok()) << directory.error().text;
  EXPECT_EQ(directory->records().size(), storages.size() + 3);
}

// --- hostile files

// Changes a number in the directory entry of `record`.
template <class T>
std::string patched(std::string text, const std::string& record, size_t field, T number) {
  const size_t name = text.rfind("archive/" + record);
  std::memcpy(&text[name - 46 + field], &number, sizeof number);
  return text;
}

TEST(Archive, RejectsHostileDirectories) {
  const std::string text = make_file().text;
  EXPECT_THAT(refusal(patched<uint16_t>(text, "data/b", 10, 8)), HasSubstr("compressed"));
  EXPECT_THAT(refusal(patched<uint16_t>(text, "data/b", 8, 1)), HasSubstr("encrypted"));
  EXPECT_THAT(refusal(patched<uint32_t>(text, "data/b", 24, 99)), HasSubstr("contradict"));
  EXPECT_THAT(refusal(patched<uint64_t>(text, "data/b", 20, 0x7000000070000000)),
              HasSubstr("overlap"));
  EXPECT_THAT(refusal(patched<uint32_t>(text, "data/b", 42, 0)), HasSubstr("overlap"));
  EXPECT_THAT(refusal(patched<uint32_t>(text, "data/b", 42, 0xFFFFFFFF)), HasSubstr("contradict"));
  EXPECT_THAT(refusal(patched<uint32_t>(text, "data/b", 0, 7)), HasSubstr("broken"));
  EXPECT_THAT(refusal(patched<uint16_t>(text, "data/b", 28, 60'000)), HasSubstr("broken"));
  EXPECT_THAT(refusal(patched<char>(text, "data/b", 46 + 13, 'w')), HasSubstr("two records"));
  EXPECT_THAT(refusal(patched<char>(text, "data/b", 46 + 7, 'x')), HasSubstr("storage 'b'"));
  EXPECT_THAT(refusal(patched<char>(text, "data.pkl", 46 + 8, 'x')),
              HasSubstr("no record 'data.pkl'"));
}

TEST(Archive, RejectsStoragesShorterThanTheirTensors) {
  Text out;
  const pickle::Value longer(pickle::Dict{{{"b", tensor("b", "float32", 4)}}});
  const Plan plan({{"b", 12}});
  ASSERT_TRUE(write_part(out, *plan.find("b"), 0, bytes_of(bytes_for("b"))).ok());
  const std::vector<uint32_t> crc32s{crc32(bytes_of(bytes_for("b")))};
  ASSERT_TRUE(write_rest(out, plan, longer, crc32s).ok());
  EXPECT_THAT(refusal(out.text), HasSubstr("storage 'b' is missing or too short"));
}

TEST(Safetensors, HasNamesShapesAndElementsInOrder) {
  const std::string bytes("abcdef");
  const pickle::Value tree(pickle::Dict{
      {{"t", TensorRef{"0", "uint8", 6, 0, {2, 3}, {1, 2}, false}},  // a transposed view
       {"one", TensorRef{"0", "uint8", 6, 5, {}, {}, false}}}});
  Text file;
  ASSERT_TRUE(write_file(file, tree, [&](const auto&) { return bytes_of(bytes); }).ok());
  Result<TensorFile> opened = open_text(file.text);
  ASSERT_TRUE(opened.ok());
  Text out;
  ASSERT_TRUE(write_safetensors(out, *opened, tensors_of(opened->value())).ok());
  uint64_t header = 0;
  std::memcpy(&header, out.text.data(), sizeof header);
  EXPECT_EQ(header % 8, 0U);
  EXPECT_THAT(out.text.substr(8, header),
              testing::StartsWith(
                  R"({"t":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]},"one":{"dtype":"U8",)"
                  R"("shape":[],"data_offsets":[6,7]},"__metadata__":{"format":"pt"}})"));
  EXPECT_EQ(out.text.substr(8 + header), "acebdff");
}

TEST(Safetensors, RejectsWhatTheFormatLacks) {
  const auto refused = [](const TensorRef& ref) {
    Text file, out;
    const std::string bytes(static_cast<size_t>(storages_of(ref)[0].bytes), '\0');
    EXPECT_TRUE(write_file(file, ref, [&](const auto&) { return bytes_of(bytes); }).ok());
    Result<TensorFile> opened = open_text(file.text);
    EXPECT_TRUE(opened.ok());
    return write_safetensors(out, *opened, {{"a", ref}, {"b", ref}}).error().text;
  };
  EXPECT_THAT(refused(tensor("0", "complex64", 2)), HasSubstr("complex64"));
  EXPECT_THAT(refused({"0", "uint8", 1, 0, {int64_t{1} << 40}, {0}, false}), HasSubstr("expanded"));
  EXPECT_THAT(refused({"0", "float32", 1, 0, {1}, {1}, false, false, true}),
              HasSubstr("resolve_neg()"));
}

}  // namespace
}  // namespace cpprun::archive

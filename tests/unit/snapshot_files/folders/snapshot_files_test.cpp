// Manifests, folder contents and retention, on a disk in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "snapshot_files/archive/crc32.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"
#include "snapshot_files/folders/manifest.hpp"
#include "snapshot_files/folders/prune.hpp"
#include "tests/support/memory_files.hpp"

namespace cpprun::snapshot_files {
namespace {

using test::MemoryFiles;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Manifest some_manifest(int64_t step = 96) {
  Manifest manifest;
  manifest.id = "0123456789abcdef0123456789abcdef";
  manifest.step = step;
  manifest.epoch = 3;
  manifest.world_size = 2;
  manifest.run_id = "gr\xc3\xbc\xc3\x9f \"quoted\"";
  manifest.round = 7;
  manifest.torch = "2.11.0";
  manifest.saved_at = "2026-01-02T03:04:05Z";
  manifest.files = {{"model.pt", 5, 0xDEADBEEF}, {"rank-0.pt", 0, 7}};
  manifest.elsewhere = {"rank-1.pt"};
  manifest.user = R"({"best":0.5,"tags":["a"]})";
  return manifest;
}

std::string replaced(const std::string& what, const std::string& by) {
  std::string text = encode(some_manifest());
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in " << text;
  return text.replace(at, what.size(), by);
}
std::string refusal(const std::string& text) {
  Result<Manifest> manifest = decode_manifest(text);
  return manifest ? "read" : manifest.error().text;
}

TEST(Manifest, ReadsAWrittenManifest) {
  Result<Manifest> again = decode_manifest(encode(some_manifest()));
  ASSERT_TRUE(again.ok()) << again.error().text;
  EXPECT_EQ(*again, some_manifest());
  EXPECT_EQ(again->find("model.pt")->crc32, 0xDEADBEEF);
  EXPECT_EQ(again->find("optim.pt"), nullptr);
}

TEST(Manifest, IgnoresUnknownFields) {
  Result<Manifest> again = decode_manifest(replaced("{", R"({"new": {"x": [1]},)"));
  ASSERT_TRUE(again.ok()) << again.error().text;
  EXPECT_EQ(*again, some_manifest());
}

TEST(Manifest, RejectsInvalidManifestsByName) {
  EXPECT_THAT(refusal(""), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(replaced(R"("format": 1)", R"("format": 2)")), HasSubstr("newer than 1"));
  EXPECT_THAT(refusal(replaced(R"("step": 96)", R"("step": -1)")), HasSubstr("'step'"));
  EXPECT_THAT(refusal(replaced(R"("step": 96)", R"("step": 1.5)")), HasSubstr("'step'"));
  EXPECT_THAT(refusal(replaced(R"("step": 96)", R"("step": 18446744073709551615)")),
              HasSubstr("'step'"));
  EXPECT_THAT(refusal(replaced("0123456789abcdef", "0123456789abcdeX")), HasSubstr("'id'"));
  EXPECT_THAT(refusal(replaced("deadbeef", "beef")), HasSubstr("'files'"));
  EXPECT_THAT(refusal(replaced("model.pt", "../model.pt")), HasSubstr("'files'"));
  EXPECT_THAT(refusal(replaced("model.pt", ".hidden")), HasSubstr("'files'"));
  EXPECT_THAT(refusal(replaced("model.pt", "rank-0.pt")), HasSubstr("'files'"));
  EXPECT_THAT(refusal(replaced("rank-1.pt", "a/b")), HasSubstr("'elsewhere'"));
  EXPECT_THAT(
      refusal(replaced(R"("tags")", R"("run": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[)")),
      HasSubstr("nested too deeply"));
}

TEST(SnapshotRetention, TheNewestAlwaysStays) {
  EXPECT_THAT(steps_to_remove({}, {}), IsEmpty());
  EXPECT_THAT(steps_to_remove({4}, {.last = 0}), IsEmpty());
  EXPECT_THAT(steps_to_remove({1, 2, 3}, {.last = 0}), ElementsAre(1, 2));
  EXPECT_THAT(steps_to_remove({30, 10, 20, 40}, {.last = 2}), ElementsAre(10, 20));
  EXPECT_THAT(steps_to_remove({30, 10, 20, 40}, {.last = 9}), IsEmpty());
  EXPECT_THAT(steps_to_remove({10, 20, 30, 40, 50}, {.last = 1, .every = 20}), ElementsAre(10, 30));
}

TEST(SnapshotRetention, LaterStepsThanTheNewestDoNotCount) {
  EXPECT_THAT(steps_to_remove({140, 160, 20}, {.last = 2}, 20), IsEmpty());
  EXPECT_THAT(steps_to_remove({140, 160, 20, 40, 60}, {.last = 2}, 60), ElementsAre(20));
}

TEST(Catalog, NamesAreDecimalWithoutPadding) {
  EXPECT_EQ(step_of_name("step-0"), 0);
  EXPECT_EQ(step_of_name(snapshot_name(INT64_MAX)), INT64_MAX);
  for (const char* name : {"step-", "step-01", "step--1", "step-+1", "step-1 ", "step-1.tmp",
                           "Step-1", "step-9223372036854775808", ".step-1"}) {
    EXPECT_EQ(step_of_name(name), std::nullopt) << name;
  }
}

// A folder with snapshots that may be incomplete.
class CatalogTest : public testing::Test {
 protected:
  CatalogTest() { EXPECT_TRUE(files_.make_folder("d").ok()); }

  void put(const std::string& path, const std::string& text) {
    Result<std::unique_ptr<File>> file = files_.create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->write_at(0, archive::bytes_of(text)).ok());
  }
  // model.pt with five bytes, and a manifest for it.
  std::string snapshot(int64_t step, int64_t step_in_manifest = -1) {
    const std::string path = "d/" + snapshot_name(step);
    EXPECT_TRUE(files_.make_folder(path).ok());
    Manifest manifest = some_manifest(step_in_manifest < 0 ? step : step_in_manifest);
    manifest.files = {{"model.pt", 5, archive::crc32(archive::bytes_of("12345"))}};
    put(path + "/model.pt", "12345");
    put(path + "/manifest.json", encode(manifest));
    return path;
  }
  // "96 64; 32 its file ...": complete ones; then the others and the reason.
  std::string look(size_t most = 8) {
    Result<Catalog> catalog = scan(files_, "d", most);
    EXPECT_TRUE(catalog.ok());
    std::string text;
    for (const FoundSnapshot& found : catalog->complete) text += std::to_string(found.step) + " ";
    for (const Incomplete& found : catalog->incomplete) {
      text += "; " + std::to_string(found.step) + " " + found.why;
    }
    return text;
  }

  MemoryFiles files_;
};

TEST_F(CatalogTest, FindsTheNewestCompleteSnapshot) {
  for (const int64_t step : {9, 100, 20}) snapshot(step);
  EXPECT_EQ(look(), "100 20 9 ");
  EXPECT_EQ(look(2), "100 20 ");
  EXPECT_EQ(scan(files_, "d//")->complete[0].path, "d/step-100");
  EXPECT_TRUE(look_at(files_, "d/step-9/").ok());
  EXPECT_TRUE(scan(files_, "nowhere")->complete.empty());
}

TEST_F(CatalogTest, ExplainsAnIncompleteSnapshot) {
  snapshot(1);
  const std::string two = snapshot(2), three = snapshot(3), four = snapshot(4);
  snapshot(5, /*step_in_manifest=*/6);
  ASSERT_TRUE(files_.remove_file(two + "/manifest.json").ok());
  ASSERT_TRUE(files_.remove_file(snapshot(8) + "/manifest.json").ok());
  put(two + "/.metadata", "");
  ASSERT_TRUE(files_.remove_file(three + "/model.pt").ok());
  ASSERT_TRUE(
      (*files_.open_to_write(four + "/model.pt"))->write_at(5, archive::bytes_of("6")).ok());
  put("d/step-7", "no folder");
  EXPECT_EQ(look(),
            "1 ; 8 it has no manifest.json; 7 it is no folder; 5 its manifest has step 6; "
            "4 its file model.pt has 6 bytes, by the manifest it has 5; "
            "3 its file model.pt is missing; "
            "2 it has no manifest.json; it is a checkpoint of torch.distributed.checkpoint");
  EXPECT_EQ(look(1), look());
}

TEST_F(CatalogTest, VerifyFindsDamageThatSizesDoNotShow) {
  const std::string path = snapshot(1);
  EXPECT_TRUE(verify(files_, *look_at(files_, path)).ok());
  ASSERT_TRUE(
      (*files_.open_to_write(path + "/model.pt"))->write_at(2, archive::bytes_of("x")).ok());
  ASSERT_TRUE(look_at(files_, path).ok());
  EXPECT_THAT(verify(files_, *look_at(files_, path)).error().text,
              HasSubstr("d/step-1/model.pt is not what was written"));
}

TEST_F(CatalogTest, PruneKeepsTheNewestAndRemovesDraftsOfDeadWriters) {
  for (const int64_t step : {1, 2, 3, 4, 5}) snapshot(step);
  ASSERT_TRUE(files_.remove_file("d/step-2/model.pt").ok());
  ASSERT_TRUE(files_.remove_file("d/step-5/model.pt").ok());
  Result<Draft> alive = Draft::create(files_, "d", 6, make_nonce());
  ASSERT_TRUE(alive.ok());
  ASSERT_TRUE(Draft::create(files_, "d", 7, make_nonce()).ok());  // its writer ends immediately
  put(draft_of("d/snapshot.pt", make_nonce()), "half");
  put("d/.hidden.tmp", "somebody else's");
  const Pruned pruned = prune(files_, "d", {.last = 1, .every = 3});
  EXPECT_TRUE(pruned.status.ok());
  EXPECT_EQ(look(), "4 3 ; 5 its file model.pt is missing");
  std::vector<std::string> names;
  const std::vector<Entry> left = *files_.list("d");
  for (const Entry& entry : left) names.push_back("d/" + entry.name);
  EXPECT_THAT(names,
              ElementsAre("d/.hidden.tmp", alive->path(), "d/step-3", "d/step-4", "d/step-5"));
  alive->discard();
  EXPECT_FALSE(files_.exists(alive->path()));
}

// Names of the folder's entries, without nonces.
std::vector<std::string> names_in(FileLayer& files) {
  std::vector<std::string> names;
  const std::vector<Entry> entries = *files.list("d");
  for (const Entry& entry : entries) names.push_back(entry.name.substr(0, entry.name.find('.')));
  return names;
}

TEST_F(CatalogTest, PruneSetsAsideLaterStepsThanTheWrittenOne) {
  for (const int64_t step : {100, 140, 160, 120}) snapshot(step);
  ASSERT_TRUE(files_.remove_file("d/step-160/model.pt").ok());
  const Pruned pruned = prune(files_, "d", {.last = 2}, 120);
  EXPECT_TRUE(pruned.status.ok());
  EXPECT_THAT(pruned.removed, IsEmpty());
  ASSERT_EQ(pruned.set_aside.size(), 2U);
  EXPECT_THAT(pruned.set_aside[0], HasSubstr("d/left-step-160."));
  EXPECT_EQ(look(), "120 100 ");
  EXPECT_THAT(names_in(files_),
              ElementsAre("left-step-140", "left-step-160", "step-100", "step-120"));
  // Renamed back by hand, it is unchanged.
  ASSERT_TRUE(files_.rename(pruned.set_aside[1], "d/step-140").ok());
  EXPECT_EQ(look(), "140 120 100 ");
}

TEST_F(CatalogTest, CheckpointsOfOtherProgramsStay) {
  for (const int64_t step : {1, 2, 5}) {
    const std::string path = "d/" + snapshot_name(step);
    ASSERT_TRUE(files_.make_folder(path).ok());
    put(path + "/.metadata", "of DCP");
  }
  for (const int64_t step : {3, 4}) snapshot(step);
  const Pruned pruned = prune(files_, "d", {.last = 1}, 4);
  EXPECT_TRUE(pruned.status.ok());
  EXPECT_THAT(names_in(files_), ElementsAre("step-1", "step-2", "step-4", "step-5"));
  Result<Draft> draft = Draft::create(files_, "d", 5, make_nonce());
  ASSERT_TRUE(draft.ok());
  EXPECT_THAT(draft->publish().error().text, HasSubstr("it is no snapshot of cpprun"));
  EXPECT_TRUE(files_.exists("d/step-5/.metadata"));
}

TEST_F(CatalogTest, MarkBadSetsAsideTheStepAndAllLaterOnes) {
  for (const int64_t step : {80, 100, 120}) snapshot(step);
  const Pruned pruned = mark_bad(files_, "d/", 100);
  ASSERT_TRUE(pruned.status.ok()) << pruned.status.error().text;
  ASSERT_EQ(pruned.set_aside.size(), 2U);
  // The newest first, so that what an interrupted call leaves is still bad.
  EXPECT_THAT(pruned.set_aside[0], HasSubstr("d/left-step-120."));
  EXPECT_THAT(pruned.set_aside[1], HasSubstr("d/left-step-100."));
  for (const std::string& path : pruned.set_aside) {
    EXPECT_TRUE(files_.exists(path + "/" + kBadMarkName)) << path;
  }
  EXPECT_EQ(look(), "80 ");
  EXPECT_FALSE(files_.exists(std::string("d/step-80/") + kBadMarkName));
  EXPECT_THAT(mark_bad(files_, "d", 100).set_aside, IsEmpty());
  EXPECT_FALSE(mark_bad(files_, "elsewhere", 1).status.ok());
}

TEST_F(CatalogTest, SetsAsideAtMostAsManyAsItKeeps) {
  snapshot(10);
  for (const int64_t later : {30, 40, 50}) {
    snapshot(later);
    EXPECT_EQ(prune(files_, "d", {.last = 2}, 10).set_aside.size(), 1U);
  }
  EXPECT_THAT(names_in(files_), ElementsAre("left-step-40", "left-step-50", "step-10"));
}

TEST_F(CatalogTest, PruneRemovesNothingWhileTheWrittenSnapshotIsInvisible) {
  for (const int64_t step : {1, 2, 9}) snapshot(step);
  EXPECT_THAT(prune(files_, "d", {.last = 1}, 3).removed, IsEmpty());
  EXPECT_EQ(look(), "9 2 1 ");
}

TEST_F(CatalogTest, KeepsDraftsOfOtherMachinesForADay) {
  const std::string far = "d/.step-8.00000000deadbeef.tmp";
  ASSERT_TRUE(files_.make_folder(far).ok());
  EXPECT_THAT(sweep_drafts(files_, "d").removed, ElementsAre(far));  // changed in 1970
  ASSERT_TRUE(files_.make_folder(far).ok());
  files_.changed_at = 4'000'000'000;
  EXPECT_THAT(sweep_drafts(files_, "d").removed, IsEmpty());
}

TEST_F(CatalogTest, RejectsAManifestForFilesOfAnotherSize) {
  Result<Draft> draft = Draft::create(files_, "d/new/deep/", 9, make_nonce());
  ASSERT_TRUE(draft.ok()) << draft.error().text;
  put(draft->path_of("model.pt"), "1234");
  Manifest manifest = some_manifest(9);
  manifest.files = {{"model.pt", 5, 0}};
  EXPECT_THAT(draft->write_manifest(manifest).error().text, HasSubstr("4 bytes, but 5"));
  EXPECT_FALSE(Draft::join(files_, "d", 9, make_nonce()).ok());
}

}  // namespace
}  // namespace cpprun::snapshot_files

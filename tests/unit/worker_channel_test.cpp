// The bytes of the worker channel and the layout of the shared page.
#include "common/worker_channel.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>

#include "common/worker_page.hpp"

namespace cpprun::channel {
namespace {

using namespace std::string_literals;

Result<Message> decoded(const std::string& bytes) {
  return decode({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(WorkerChannel, MessagesComeBackAsTheyWere) {
  Result<Message> hello = decoded(encode(Hello{kVersion + 1}));
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(std::get<Hello>(*hello).version, kVersion + 1);
  EXPECT_EQ(std::get<Page>(*decoded(encode(Page{4096}))).bytes, 4096u);
  EXPECT_TRUE(std::holds_alternative<Ready>(*decoded(encode(Ready{}))));
  EXPECT_EQ(std::get<Report>(*decoded(encode(Report{"a\0b\n"s}))).text, "a\0b\n"s);
  EXPECT_EQ(std::get<Report>(*decoded(encode(Report{}))).text, "");
}

TEST(WorkerChannel, BytesAreFixed) {
  EXPECT_EQ(encode(Hello{1}), "CPRW\0\0\0\0\1\0\0\0"s);
  EXPECT_EQ(encode(Ready{}), "CPRW\2\0\0\0"s);
}

TEST(WorkerChannel, ALongReportIsCut) {
  std::string text(limits::kWorkerReportBytes + 100, 'x');
  std::string bytes = encode(Report{text});
  EXPECT_EQ(bytes.size(), kMessageBytes);
  EXPECT_EQ(std::get<Report>(*decoded(bytes)).text, text.substr(0, limits::kWorkerReportBytes));
}

TEST(WorkerChannel, WhatIsNoMessageIsRefused) {
  std::string hello = encode(Hello{});
  for (size_t size = 0; size < hello.size(); ++size) {
    EXPECT_FALSE(decoded(hello.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(decoded(hello + "x").ok());
  EXPECT_FALSE(decoded(encode(Ready{}) + "x").ok());
  EXPECT_FALSE(decoded(encode(Page{}) + "x").ok());
  EXPECT_FALSE(decoded("CPRN" + hello.substr(4)).ok());
  EXPECT_FALSE(decoded("CPRW\4\0\0\0"s).ok());
  EXPECT_FALSE(decoded("CPRW\xff\xff\xff\xff"s).ok());
  EXPECT_FALSE(decoded(encode(Report{std::string(limits::kWorkerReportBytes, 'x')}) + "x").ok());
}

TEST(WorkerChannel, RandomBytesNeverCrash) {
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = i % 2 == 0 ? "CPRW" : "";
    size_t size = random() % 24;
    while (bytes.size() < size) bytes.push_back(static_cast<char>(random() % 5));
    static_cast<void>(decoded(bytes).ok());
  }
}

// Other programs read and write the page as well: its places are a contract.
TEST(WorkerPage, LayoutIsFixed) {
  EXPECT_EQ(offsetof(WorkerPage, version), 4u);
  EXPECT_EQ(offsetof(WorkerPage, bytes), 8u);
  EXPECT_EQ(offsetof(WorkerPage, step), 64u);
  EXPECT_EQ(offsetof(WorkerPage, collectives), 72u);
  EXPECT_EQ(offsetof(WorkerPage, heartbeat_ns), 80u);
  EXPECT_EQ(offsetof(WorkerPage, phase), 88u);
  EXPECT_EQ(offsetof(WorkerPage, is_ready), 92u);
  EXPECT_EQ(offsetof(WorkerPage, wants_stop), 128u);
  EXPECT_EQ(offsetof(WorkerPage, snapshot_written), 192u);
  EXPECT_EQ(offsetof(WorkerPage, snapshot_newest), 256u);
}

}  // namespace
}  // namespace cpprun::channel

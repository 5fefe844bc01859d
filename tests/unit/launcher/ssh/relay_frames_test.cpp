// What passes between launcher and relay.
#include "launcher/ssh/plan/relay_frames.hpp"

#include <gtest/gtest.h>

#include "common/limits/ssh.hpp"

namespace cpprun::ssh {
namespace {

using FrameKind = RelayFrame::Kind;

TEST(RelayFrames, ArriveInPiecesOfAnySize) {
  const std::string payload("a\0\n\xff", 4);
  const std::string bytes =
      relay_frame(FrameKind::Input, 70'000, payload) + relay_frame(FrameKind::CloseInput, 1);
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    RelayFrameReader reader;
    std::vector<std::string> payloads;
    std::vector<uint32_t> processes;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(std::string_view(bytes).substr(at, piece));
      for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
        payloads.emplace_back((*frame)->payload);
        processes.push_back((*frame)->process);
      }
    }
    EXPECT_EQ(payloads, (std::vector<std::string>{payload, ""})) << piece;
    EXPECT_EQ(processes, (std::vector<uint32_t>{70'000, 1})) << piece;
  }
}

TEST(RelayFrames, OtherBytesAreRefused) {
  for (const std::string& bytes :
       {std::string("Welcome to the cluster"), std::string(20, '\0'),
        relay_frame(FrameKind::Output, 1, std::string(limits::kRelayFrameBytes + 1, 'x'))}) {
    RelayFrameReader reader;
    reader.feed(bytes);
    EXPECT_FALSE(reader.next());
  }
}

TEST(RelayFrames, WordsArriveAsTheyAre) {
  const std::vector<std::string> words = {"ssh", "", "two words", "a\nb"};
  EXPECT_EQ(words_of_start(start_payload(words)), words);
  EXPECT_TRUE(words_of_start("").empty());
}

TEST(RelayFrames, EndsArrive) {
  ProcessEnd end;
  end.code = 255;
  end.was_killed = true;
  const std::optional<ProcessEnd> got = end_of_payload(end_payload(end));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->code, 255);
  EXPECT_TRUE(got->was_killed && !got->is_relay_lost);
  EXPECT_FALSE(end_of_payload("x"));
}

}  // namespace
}  // namespace cpprun::ssh

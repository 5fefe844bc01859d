#include "rendezvous/protocol/tcpstore/tcpstore_reply.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "rendezvous/protocol/tcpstore/tcpstore.hpp"

namespace cpprun::tcpstore {
namespace {

std::array<uint8_t, 8> head(int64_t number) {
  std::array<uint8_t, 8> bytes{};
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

TEST(TcpStoreReply, NumbersAreLittleEndian) {
  EXPECT_EQ(number_of(std::array<uint8_t, 8>{1, 2, 0, 0, 0, 0, 0, 0}), 513);
  EXPECT_EQ(number_of(head(-7)), -7);
}

TEST(TcpStoreReply, AcceptsALengthUpToTheLimit) {
  EXPECT_EQ(*length_of(head(0), 10), 0u);
  EXPECT_EQ(*length_of(head(10), 10), 10u);
}

TEST(TcpStoreReply, RejectsALengthAboveTheLimit) {
  for (int64_t number : {int64_t{11}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    Result<size_t> length = length_of(head(number), 10);
    ASSERT_FALSE(length.ok()) << number;
    EXPECT_EQ(length.error().kind, ErrorKind::Protocol);
    EXPECT_NE(length.error().text.find("at most 10"), std::string::npos) << length.error().text;
  }
}

TEST(TcpStoreReply, ADeletionIsAnsweredWithZeroOrOne) {
  EXPECT_FALSE(*was_deleted(head(0)));
  EXPECT_TRUE(*was_deleted(head(1)));
  EXPECT_FALSE(was_deleted(head(2)).ok());
}

TEST(TcpStoreReply, AQueueLengthIsNotNegative) {
  EXPECT_EQ(*queue_length_of(head(3)), 3);
  EXPECT_FALSE(queue_length_of(head(-1)).ok());
}

TEST(TcpStoreReply, ACheckIsAnsweredWithZeroForPresent) {
  EXPECT_TRUE(*is_present(kReady));
  EXPECT_FALSE(*is_present(kNotReady));
  EXPECT_FALSE(is_present(2).ok());
}

TEST(TcpStoreWaitReply, IsCompleteWhenTheKeysArePresent) {
  WaitReply reply;
  EXPECT_FALSE(reply.is_over());
  ASSERT_TRUE(reply.on_byte(kReady).ok());
  EXPECT_TRUE(reply.is_over() && reply.is_ready());
}

TEST(TcpStoreWaitReply, CancelledMeansNotReady) {
  WaitReply reply;
  reply.cancel();
  ASSERT_TRUE(reply.on_byte(kWaitCanceled).ok());
  EXPECT_TRUE(reply.is_over());
  EXPECT_FALSE(reply.is_ready());
}

TEST(TcpStoreWaitReply, AnAnswerThatCrossedTheCancelCountsAndTheCancelIsStillAnswered) {
  WaitReply reply;
  reply.cancel();
  ASSERT_TRUE(reply.on_byte(kReady).ok());
  EXPECT_FALSE(reply.is_over());
  ASSERT_TRUE(reply.on_byte(kWaitCanceled).ok());
  EXPECT_TRUE(reply.is_over() && reply.is_ready());
}

TEST(TcpStoreWaitReply, RejectsImpossibleAnswers) {
  WaitReply uncancelled;
  EXPECT_FALSE(uncancelled.on_byte(kWaitCanceled).ok());
  WaitReply twice;
  twice.cancel();
  ASSERT_TRUE(twice.on_byte(kReady).ok());
  EXPECT_FALSE(twice.on_byte(kReady).ok());
  WaitReply strange;
  EXPECT_FALSE(strange.on_byte(7).ok());
}

}  // namespace
}  // namespace cpprun::tcpstore

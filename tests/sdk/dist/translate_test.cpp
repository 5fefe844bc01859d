// LibTorch's and Gloo's errors become ours: by type, otherwise by the stable parts of their texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/exception.h>

#include "cpprun/dist/backend/error_translation.hpp"

namespace cpprun::dist {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Translate, RecognizesGlooTexts) {
  EXPECT_STREQ(error_class_of("[enforce fail at pair.cc] Connection reset by peer"),
               "DistNetworkError");
  EXPECT_STREQ(error_class_of("Connection closed by peer [127.0.0.1]:4"), "DistNetworkError");
  EXPECT_STREQ(error_class_of("Timed out waiting 4000ms for recv operation"), "DistTimeoutError");
  EXPECT_STREQ(error_class_of("Application timeout caused pair closure"), "DistTimeoutError");
  EXPECT_STREQ(error_class_of("Cannot use ReduceOp.BAND with non-integral dtype"),
               "DistUnsupportedError");
  EXPECT_STREQ(error_class_of("ProcessGroupGloo does not support alltoall"),
               "DistUnsupportedError");
  EXPECT_STREQ(error_class_of("Detected mismatch between collectives on ranks."),
               "DistMismatchError");
  EXPECT_STREQ(error_class_of("something new"), "DistBackendError");
}

TEST(Translate, ExceptionTypesPrecedeTexts) {
  EXPECT_THAT([] { translated("f", [] { C10D_THROW_ERROR(TimeoutError, "connection"); }); },
              ThrowsMessage<DistTimeoutError>(HasSubstr("f: connection")));
  EXPECT_THAT([] { translated("f", [] { throw std::invalid_argument("bad shape"); }); },
              ThrowsMessage<DistArgumentError>(HasSubstr("f: bad shape")));
}

TEST(Translate, PassesOwnErrors) {
  EXPECT_THAT([] { translated("f", [] { throw DistStateError("as it was"); }); },
              ThrowsMessage<DistStateError>(testing::StrEq("as it was")));
}

TEST(Translate, RemovesStacks) {
  EXPECT_THAT([] { translated("f", [] { TORCH_CHECK(false, "short"); }); },
              ThrowsMessage<DistBackendError>(testing::StrEq("f: short")));
}

}  // namespace
}  // namespace cpprun::dist

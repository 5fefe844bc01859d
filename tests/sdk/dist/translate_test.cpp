// LibTorch's and Gloo's errors become ours: by type, otherwise by the stable parts of their texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/exception.h>

#include "cpprun/dist/backend/error_translation.hpp"

namespace cpprun::dist {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

template <class Error>
void expect_class(const std::string& text) {
  EXPECT_THAT([&] { translated("f", [&] { throw std::runtime_error(text); }); },
              ThrowsMessage<Error>(testing::StrEq("f: " + text)));
}

TEST(Translate, RecognizesGlooTexts) {
  expect_class<DistNetworkError>("[enforce fail at pair.cc] Connection reset by peer");
  expect_class<DistNetworkError>("Connection closed by peer [127.0.0.1]:4");
  expect_class<DistTimeoutError>("Timed out waiting 4000ms for recv operation");
  expect_class<DistTimeoutError>("Application timeout caused pair closure");
  expect_class<DistUnsupportedError>("Cannot use ReduceOp.BAND with non-integral dtype");
  expect_class<DistUnsupportedError>("ProcessGroupGloo does not support alltoall");
  expect_class<DistMismatchError>("Detected mismatch between collectives on ranks.");
  expect_class<DistBackendError>("something new");
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

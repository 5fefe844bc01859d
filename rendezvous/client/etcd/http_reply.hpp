// HttpReply: bytes of a connection in, one HTTP reply out. Sizes are bounded; nothing is sent here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace cpprun::etcd {

class HttpReply {
 public:
  enum class State { NeedMore, Whole, Broken };

  HttpReply();
  ~HttpReply();
  HttpReply(const HttpReply&) = delete;

  // What has come since. Once Whole or Broken it stays so.
  State feed(std::string_view bytes);
  // The connection has ended, which ends a reply without a length.
  State end();

  // Of a whole reply.
  int status() const;
  const std::string& body() const;
  bool keeps_connection() const;  // and nothing came after it
  // Of a broken one: for people.
  const std::string& why() const { return why_; }

 private:
  struct Parser;
  State broken(std::string why);

  std::unique_ptr<Parser> parser_;
  std::string input_;  // not yet taken
  size_t received_ = 0;
  State state_ = State::NeedMore;
  std::string why_;
};

}  // namespace cpprun::etcd

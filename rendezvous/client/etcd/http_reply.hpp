// HttpReply: parses one HTTP reply from the bytes of a connection. Sizes are bounded. No I/O.
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

  // Passes newly received bytes. Whole and Broken are final.
  State feed(std::string_view bytes);
  // The connection has ended; this completes a reply without a length.
  State end();

  // Requires: Whole.
  int status() const;
  const std::string& body() const;
  bool keeps_connection() const;  // keep-alive, and no bytes after the reply
  // Requires: Broken. For people.
  const std::string& why() const { return why_; }

 private:
  struct Parser;
  State broken(std::string why);

  std::unique_ptr<Parser> parser_;
  std::string input_;  // not parsed yet
  size_t received_ = 0;
  State state_ = State::NeedMore;
  std::string why_;
};

}  // namespace cpprun::etcd

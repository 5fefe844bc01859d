// NameLookup: resolves one host name on a thread of its own. A resolver may take minutes and cannot
// be interrupted; neither the loop nor the end of the process waits for it. Thread: the loop's.
// Lives until the callback, or until its owner drops it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/endpoint.hpp"

namespace cpprun {

class NameLookup : public std::enable_shared_from_this<NameLookup> {
 public:
  using Addresses = std::vector<boost::asio::ip::tcp::endpoint>;
  // No address: `why` is the resolver's reason.
  using Callback = std::function<void(Addresses, const std::string& why)>;

  // Calls back once, from the loop, never from inside start(); not after it was dropped.
  static std::shared_ptr<NameLookup> start(boost::asio::io_context& loop, const Endpoint& endpoint,
                                           Callback callback);

  explicit NameLookup(Callback callback);  // use start()

 private:
  void report(Addresses addresses, const std::string& why);

  Callback callback_;
};

}  // namespace cpprun

// The store: from the bytes of a request to the bytes of its reply.
#include <memory>
#include <string>

#include "bench/parts/parts.hpp"
#include "rendezvous/store/store.hpp"
#include "tests/support/encoded_replies.hpp"

namespace cpprun::bench {
namespace {

// A store with 1,000 keys, and the request path of one connection.
class Served {
 public:
  Served() {
    for (int i = 0; i < 1000; ++i) {
      std::string set;
      tcpstore::put_write(set, tcpstore::Op::Set, key(i), std::string(64, 'x'));
      serve(set);
    }
  }

  static std::string key(int number) { return "default_pg/0//cpu//0/" + std::to_string(number); }

  void serve(std::string_view request) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(request.data());
    tcpstore::Command command;
    keep(parser_.parse({bytes, request.size()}, command));
    store_.apply(SessionId(1), command, replies_);
    replies_.replies[1].clear();
  }

 private:
  Store store_;
  EncodedReplies replies_;
  tcpstore::Parser parser_{tcpstore::Dialect::Legacy21};
};

Loop repeat(std::string request) {
  return [served = std::make_shared<Served>(), request = std::move(request)](size_t n) {
    while (n-- > 0) served->serve(request);
  };
}

}  // namespace

BENCH_PART(store_get) {
  std::string request;
  tcpstore::put_key(request, tcpstore::Op::Get, Served::key(7), tcpstore::Dialect::Legacy21);
  return repeat(request);
}

BENCH_PART(store_set) {
  std::string request;
  tcpstore::put_write(request, tcpstore::Op::Set, Served::key(7), std::string(64, 'y'),
                      tcpstore::Dialect::Legacy21);
  return repeat(request);
}

BENCH_PART(store_add) {
  std::string request;
  tcpstore::put_number(request, tcpstore::Op::Add, "count", 1, tcpstore::Dialect::Legacy21);
  return repeat(request);
}

BENCH_PART(store_check_16) {
  std::vector<std::string> names;
  for (int i = 0; i < 16; ++i) names.push_back(Served::key(i));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::string request;
  tcpstore::put_keys(request, tcpstore::Op::Check, keys, tcpstore::Dialect::Legacy21);
  return repeat(request);
}

}  // namespace cpprun::bench

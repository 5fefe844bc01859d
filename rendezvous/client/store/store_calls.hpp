// StoreCalls: writes requests and reads replies over a StoreLink, one at a time; the parts of
// StoreClient's calls. Internal to the worker SDK; one thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "rendezvous/client/store/deadline.hpp"
#include "rendezvous/client/store/store_link.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore_reply.hpp"

namespace cpprun::worker {

// The deadline of the reply after a wait: at least a moment, even if the wait used up the time.
Deadline answer_by(Deadline until);

class StoreCalls {
 public:
  StoreCalls(StoreLink link, std::string prefix, std::chrono::milliseconds timeout);

  std::chrono::milliseconds timeout() const { return timeout_; }
  Deadline deadline() const { return after(timeout_); }

  // Greets on a new connection and checks that the peer is a store.
  Status greet(bool checks_in, Deadline until);

  // Each fails with BadValue, before it sends anything, if a key, value or list is too long.
  Status write(tcpstore::Op op, std::string_view key, std::string_view value);
  Status ask_bare(tcpstore::Op op, Deadline until);
  Status ask_key(tcpstore::Op op, std::string_view key, Deadline until);
  Status ask_number(tcpstore::Op op, std::string_view key, int64_t number, Deadline until);
  Status ask_compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                         Deadline until);
  Status ask_keys(tcpstore::Op op, const std::vector<std::string>& keys, Deadline until);
  Status ask_multi_set(const std::vector<std::pair<std::string, std::string>>& pairs,
                       Deadline until);

  Result<std::string> read_value(Deadline until);
  Result<int64_t> read_number(Deadline until);
  Result<bool> read_check(Deadline until);
  // Reads a number and converts it with `judge`.
  template <class T>
  Result<T> read_with(Result<T> (*judge)(tcpstore::Head), Deadline until) {
    std::array<uint8_t, 8> head{};
    if (Status got = link_.read(head, until); !got) return got.error();
    Result<T> judged = judge(head);
    if (!judged) return link_.close(judged.error());
    return judged;
  }

  // Waits for all keys until `until`; the error text names `timeout`.
  Status wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout,
              Deadline until);

 private:
  Result<std::string> wire_key(std::string_view key) const;
  Result<std::vector<std::string>> wire_keys(const std::vector<std::string>& keys) const;
  Status send(Deadline until);
  Status cancel(tcpstore::WaitReply& reply, Deadline until);
  Status read_wait(tcpstore::WaitReply& reply, Deadline until);

  StoreLink link_;
  std::string prefix_;  // including slashes
  std::chrono::milliseconds timeout_;
  std::string request_;  // buffer of the next request
};

}  // namespace cpprun::worker

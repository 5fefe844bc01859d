// StoreServer: the store in a process, as rendezvous/server has it: one parser per connection,
// replies appended to the connection. Checks every command's replies against its own list of waits.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/protocol/tcpstore/tcpstore.hpp"
#include "rendezvous/store/store.hpp"
#include "tests/support/sim/network.hpp"

namespace cpprun::sim {

class StoreServer final : public Program, private ReplySink {
 public:
  StoreServer(Network& network, HostId host, std::vector<std::string>& broken);

  ProgramId program() const { return program_; }
  int64_t waits_begun() const { return waits_begun_; }
  // Waits whose keys are all present, and that were not answered.
  int64_t overdue() const;

  void on_dialled(ConnectionId, bool, const std::string&) override {}
  void on_accepted(ConnectionId connection) override;
  void on_bytes(ConnectionId connection, std::span<const uint8_t> bytes) override;
  void on_ended(ConnectionId connection, Ending how) override;

 private:
  struct Line {
    tcpstore::Parser parser{tcpstore::Dialect::Modern};
    Bytes input;
  };
  // What a wait still needs, by this class's own account.
  struct Wait {
    int64_t number = 0;  // order of start
    std::set<std::string> missing;
  };

  void reply_byte(SessionId to, uint8_t value) override;
  void reply_number(SessionId to, int64_t value) override;
  void reply_nonce(SessionId to, uint32_t value) override;
  void reply_bytes(SessionId to, std::string_view value) override;
  void reply_value(SessionId to, const Value& value) override;
  void refuse(SessionId to, std::string_view why) override;
  void send(SessionId to, const std::string& bytes);

  void apply(ConnectionId connection, const tcpstore::Command& command);
  void foresee(ConnectionId connection, const tcpstore::Command& command);
  void foresee_key(const std::string& key);
  void compare(const char* after);
  void broken(const std::string& what) { broken_.push_back("store: " + what); }

  Network& network_;
  std::vector<std::string>& broken_;
  ProgramId program_ = 0;
  Store store_;
  std::map<ConnectionId, Line> lines_;

  std::set<std::string> present_;
  std::map<ConnectionId, Wait> waits_;
  std::vector<ConnectionId> expected_ready_;  // by the current command, in order
  std::vector<ConnectionId> ready_;           // answered by the store
  int64_t waits_begun_ = 0;
  bool is_check_ = false;
};

}  // namespace cpprun::sim

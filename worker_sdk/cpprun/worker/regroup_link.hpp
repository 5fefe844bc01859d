// RegroupLink: a second connection to the agent, over which it asks this process to leave its round
// because another worker has failed, and then gives it its place in the next one. For
// cpprun/elastic.
//
// A thread reads the connection. Other methods: one thread, the one that trains; is_requested() is
// for any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun::worker {

class AgentSocket;

class RegroupLink {
 public:
  // `wake` runs on the link's thread when the agent's request has come: it ends what the training
  // thread waits for. Null: there is no agent, or it is too old to ask.
  static std::unique_ptr<RegroupLink> open(std::function<void()> wake);
  RegroupLink(const RegroupLink&) = delete;
  ~RegroupLink();  // from now on the agent stops this worker as any other

  bool is_requested() const { return is_requested_.load(); }
  // Waits for the agent's request. False: `limit` passed first, or the agent has gone.
  bool wait_for_request(Duration limit);
  // Reports to the agent that this process has left its round after `completed` steps, waits for
  // the next round and enters it: environment(), error file and output are the new ones then. The
  // agent limits the wait: it stops a survivor for which there is no round. Error: the agent has
  // gone, or what it sent is no round.
  Status enter_next_round(int64_t completed);

 private:
  RegroupLink(AgentSocket socket, std::function<void()> wake);
  void read();

  const std::unique_ptr<AgentSocket> socket_;
  const std::function<void()> wake_;
  std::atomic<bool> is_requested_{false};

  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  std::optional<std::vector<UniqueFd>> next_round_;  // its variables, stdout and stderr
  bool has_ended_ = false;

  std::thread thread_;  // the last member: it uses the others
};

}  // namespace cpprun::worker

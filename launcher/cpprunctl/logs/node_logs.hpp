// NodeLogs: how far `cpprunctl logs --all-nodes` has read the log files of one node, and its lines.
// Pure: lines and gaps go to a sink.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::ctl {

class NodeLogs {
 public:
  struct Sink {
    // A line, without its newline, of a rank.
    std::function<void(int64_t rank, const std::string& line)> line;
    // Why lines are missing, as a text for people.
    std::function<void(const std::string& what)> gap;
  };

  // `lines`: so many of the end of each file of the newest round; negative: all of all rounds.
  NodeLogs(std::string name, int64_t lines) : name_(std::move(name)), lines_(lines) {}

  const std::string& name() const { return name_; }
  RoundNumber round() const { return round_; }
  // Its workers have written files; false also before the first reply.
  bool has_files() const { return has_files_; }
  // A reply has come; the node may have had no workers yet.
  bool has_answered() const { return has_answered_; }
  // It has all that there is now.
  bool is_caught_up() const { return has_answered_ && is_caught_up_; }
  // The same, and the node's newest round has ended.
  bool has_all() const { return is_caught_up() && (is_ended_ || round_ == RoundNumber()); }
  // No line of its round is missing, or it has read none yet: it may begin the next one.
  bool is_through() const { return has_all() || round_ == RoundNumber(); }
  // The round to which advance() would go; 0: none is known.
  RoundNumber next_round() const { return next_round_; }

  // What to ask next.
  control::LogRequest request(Incarnation node) const;
  // Takes a reply to the last request. A reply about a round after `newest` is not taken: lines of
  // an earlier round are still missing at another node.
  void take(const control::LogReply& reply, RoundNumber newest, const Sink& sink);
  // Begins the next round.
  void advance(const Sink& sink);
  // The node is gone, or the job has ended: shows incomplete lines.
  void finish(const Sink& sink);

 private:
  struct Stream {
    int64_t offset = 0;
    int64_t file = 0;
    std::string rest{};  // an incomplete line
    bool is_removed = false;
  };

  void begin(RoundNumber round, const Sink& sink);
  void take(const control::LogPart& part, const Sink& sink);
  void report_gap(const control::LogPart& part, Stream& stream, const Sink& sink) const;
  int64_t rank_of(int64_t stream) const { return base_rank_ + stream / 2; }

  const std::string name_;
  int64_t lines_;
  RoundNumber round_;
  RoundNumber next_round_;
  int64_t base_rank_ = 0;
  std::vector<Stream> streams_;
  bool has_answered_ = false;
  bool has_files_ = false;
  bool is_caught_up_ = false;
  bool is_ended_ = false;
};

}  // namespace cpprun::ctl

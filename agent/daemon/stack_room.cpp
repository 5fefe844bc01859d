#include "agent/daemon/stack_room.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "agent/daemon/quiet_thread.hpp"
#include "common/limits/operators.hpp"

namespace cpprun {
namespace {

struct Found {
  std::vector<Witness> witnesses;
  std::vector<operators::WorkerStack> stacks;
};

// In bytes of text; written as JSON it may take twice as much.
constexpr size_t kMostBytes = limits::kOperatorAnswerBytes / 3;

void collect(Found& found) {
  const std::vector<std::string> texts = collect_evidence(found.witnesses);
  size_t room = kMostBytes;
  for (size_t i = 0; i < texts.size(); ++i) {
    const WorkerSight& worker = found.witnesses[i].worker;
    const bool fits = texts[i].size() <= room;
    room -= fits ? texts[i].size() : 0;
    found.stacks.push_back({worker.rank.value, worker.pid,
                            fits ? texts[i] : summary_of(worker) + "; ask for it with --rank\n"});
  }
}

}  // namespace

void StackRoom::ask(const operators::Question& question, const Reply& reply) {
  if (is_looking_) {
    return reply(operators::refusal("somebody looks at the stacks already; try again"));
  }
  auto found = std::make_shared<Found>();  // shared: with the thread, which may outlive us
  found->witnesses = look_();
  const std::optional<int64_t> rank = question.number("rank");
  if (rank) {
    std::erase_if(found->witnesses, [&](const Witness& w) { return w.worker.rank.value != *rank; });
  }
  if (found->witnesses.empty()) {
    return reply(operators::refusal("no such worker lives on this node"));
  }
  const auto done = [this, found, reply, alive = std::weak_ptr<int>(life_)] {
    if (!alive.expired()) is_looking_ = false;
    reply(operators::encode(found->stacks));
  };
  const auto run = [found, done, work = boost::asio::make_work_guard(loop_.get_executor())] {
    collect(*found);
    boost::asio::post(work.get_executor(), done);
  };
  is_looking_ = true;
  if (Status started = start_quiet_thread(run); !started) {
    is_looking_ = false;
    reply(operators::refusal(started.error().text));
  }
}

}  // namespace cpprun

#include "agent/daemon/services/stack_room.hpp"

#include <utility>

#include "agent/daemon/way_back.hpp"
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
  if (reply_) {
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
  reply_ = reply;
  const Status started = start_quiet_thread([this, found, way = way_] {
    collect(*found);
    WayBack::post(
        way, [this, found] { std::exchange(reply_, nullptr)(operators::encode(found->stacks)); });
  });
  if (!started) std::exchange(reply_, nullptr)(operators::refusal(started.error().text));
}

}  // namespace cpprun

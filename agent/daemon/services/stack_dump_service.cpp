#include "agent/daemon/services/stack_dump_service.hpp"

#include <utility>

#include "agent/daemon/loop_poster.hpp"
#include "common/limits/operators.hpp"

namespace cpprun {
namespace {

struct Found {
  std::vector<StackTarget> witnesses;
  std::vector<admin::WorkerStack> stacks;
};

// Bytes of plain text; as JSON they may double.
constexpr size_t kMostBytes = limits::kAdminReplyBytes / 3;

void collect(Found& found) {
  const std::vector<std::string> texts = collect_stacks(found.witnesses);
  size_t room = kMostBytes;
  for (size_t i = 0; i < texts.size(); ++i) {
    const WorkerObservation& worker = found.witnesses[i].worker;
    const bool fits = texts[i].size() <= room;
    room -= fits ? texts[i].size() : 0;
    found.stacks.push_back({worker.rank.value, worker.pid,
                            fits ? texts[i] : summary_of(worker) + "; ask for it with --rank\n"});
  }
}

}  // namespace

void StackDumpService::ask(const admin::AdminQuery& query, const Reply& reply) {
  if (reply_) {
    return reply(admin::refusal("somebody looks at the stacks already; try again"));
  }
  auto found = std::make_shared<Found>();  // shared with the thread, which may outlive us
  found->witnesses = look_();
  const std::optional<int64_t> rank = query.number("rank");
  if (rank) {
    std::erase_if(found->witnesses,
                  [&](const StackTarget& w) { return w.worker.rank.value != *rank; });
  }
  if (found->witnesses.empty()) {
    return reply(admin::refusal("no such worker lives on this node"));
  }
  reply_ = reply;
  const Status started = start_detached_thread([this, found, way = poster_] {
    collect(*found);
    LoopPoster::post(
        way, [this, found] { std::exchange(reply_, nullptr)(admin::encode(found->stacks)); });
  });
  if (!started) std::exchange(reply_, nullptr)(admin::refusal(started.error().text));
}

}  // namespace cpprun

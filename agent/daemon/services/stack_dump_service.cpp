#include "agent/daemon/services/stack_dump_service.hpp"

#include <utility>

#include "agent/daemon/loop_poster.hpp"
#include "common/limits/admin.hpp"

namespace cpprun {
namespace {

struct Dump {
  std::vector<StackTarget> targets;
  std::vector<admin::WorkerStack> stacks;
};

// Bytes of plain text; as JSON they may double.
constexpr size_t kTextBytesMax = limits::kAdminReplyBytes / 3;

void collect(Dump& dump) {
  const std::vector<std::string> texts = collect_stacks(dump.targets);
  size_t room = kTextBytesMax;
  for (size_t i = 0; i < texts.size(); ++i) {
    const WorkerObservation& worker = dump.targets[i].worker;
    const bool fits = texts[i].size() <= room;
    room -= fits ? texts[i].size() : 0;
    dump.stacks.push_back({worker.rank.value, worker.pid,
                           fits ? texts[i] : summary_of(worker) + "; ask for it with --rank\n"});
  }
}

}  // namespace

void StackDumpService::ask(const admin::AdminQuery& query, const Reply& reply) {
  if (reply_) {
    return reply(admin::refusal("somebody looks at the stacks already; try again"));
  }
  auto dump = std::make_shared<Dump>();  // shared with the thread, which may outlive us
  dump->targets = sample_();
  const std::optional<int64_t> rank = query.number("rank");
  if (rank) {
    std::erase_if(dump->targets,
                  [&](const StackTarget& w) { return w.worker.rank.value != *rank; });
  }
  if (dump->targets.empty()) {
    return reply(admin::refusal("no such worker lives on this node"));
  }
  reply_ = reply;
  const Status started = start_detached_thread([this, dump, way = poster_] {
    collect(*dump);
    LoopPoster::post(way,
                     [this, dump] { std::exchange(reply_, nullptr)(admin::encode(dump->stacks)); });
  });
  if (!started) std::exchange(reply_, nullptr)(admin::refusal(started.error().text));
}

}  // namespace cpprun

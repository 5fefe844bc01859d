#include "rendezvous/coordinator/rounds/round_stop.hpp"

namespace cpprun {

void RoundStop::begin(const control::Stop& stop, const Round& round, const NodeTable& nodes,
                      Effects& effects) {
  last_ = stop;
  for (const auto& [incarnation, assignment] : round.assignments()) {
    const Node* node = nodes.find(incarnation);
    if (node == nullptr || node->worker_phase == Node::WorkerPhase::Stopped) continue;
    pending_.insert(incarnation);
    if (node->is_draining()) continue;  // it is stopping already
    send(*node, stop, effects);
  }
}

}  // namespace cpprun

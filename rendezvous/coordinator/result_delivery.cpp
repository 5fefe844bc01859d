#include "rendezvous/coordinator/result_delivery.hpp"

namespace cpprun {

void ResultDelivery::send_to_all(const NodeTable& nodes, const Node* standby, Effects& effects) {
  for (const auto& [incarnation, node] : nodes) {
    if (node.is_connected() || &node == standby) send_to(node, effects);
  }
}

void ResultDelivery::send_to(const Node& node, Effects& effects) {
  send(node, result_, effects);
  pending_.insert(node.id.incarnation);
}

}  // namespace cpprun

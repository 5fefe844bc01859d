// The kinds of orders as words: what cpprunctl says to an agent, and the agent reads.
#pragma once

#include <optional>
#include <string_view>

#include "rendezvous/protocol/orders.hpp"

namespace cpprun::control {

inline constexpr OrderKind kOrderKinds[] = {OrderKind::Restart, OrderKind::Stop, OrderKind::Drain,
                                            OrderKind::Scale};

// "restart", "stop", "drain", "scale".
constexpr const char* name_of(OrderKind kind) {
  switch (kind) {
    case OrderKind::Restart:
      return "restart";
    case OrderKind::Stop:
      return "stop";
    case OrderKind::Drain:
      return "drain";
    case OrderKind::Scale:
      return "scale";
  }
  return "";
}

// Nothing: no order is called so.
constexpr std::optional<OrderKind> order_kind(std::string_view name) {
  for (const OrderKind kind : kOrderKinds) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace cpprun::control

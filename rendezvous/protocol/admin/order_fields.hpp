// The fields of orders, as control_fields.hpp has those of all other messages. Included there.
#pragma once

#include "rendezvous/protocol/admin/orders.hpp"

namespace cpprun::control {

template <class V>
void fields(V&& v, Order& m) {
  v("id", m.id);
  v("kind", m.kind);
  v("is_resumable", m.is_resumable);
  v("node", m.node);
  v("nodes", m.nodes);
}
template <class V>
void fields(V&& v, Answer& m) {
  v("id", m.id);
  v("is_done", m.is_done);
  v("text", m.text);
}
template <class V>
void fields(V&& v, Depart& m) {
  v("saves", m.saves);
  v("why", m.why);
}

template <class V>
void fields(V&& v, Operate& m) {
  v("protocol", m.protocol);
  v("version", m.version);
}
template <class V>
void fields(V&& v, Command& m) {
  v("run_id", m.run_id);
  v("order", m.order);
  v("proof", m.proof);
}
template <class V>
void fields(V&& v, Challenge& m) {
  v("nonce", m.nonce);
  v("id", m.id);
}

inline int64_t last_value(OrderKind) {
  return static_cast<int64_t>(OrderKind::Scale);
}

inline const char* name_of(const Order&) {
  return "order";
}
inline const char* name_of(const Answer&) {
  return "answer";
}
inline const char* name_of(const Depart&) {
  return "depart";
}
inline const char* name_of(const Operate&) {
  return "operate";
}
inline const char* name_of(const Command&) {
  return "command";
}
inline const char* name_of(const Challenge&) {
  return "challenge";
}

}  // namespace cpprun::control

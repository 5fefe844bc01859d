// The fields of the admin messages, for the codec. Included by control_fields.hpp.
#pragma once

#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun::control {

template <class V>
void fields(V&& v, AdminCommand& m) {
  v("id", m.id);
  v("kind", m.kind);
  v("is_resumable", m.is_resumable);
  v("node", m.node);
  v("nodes", m.nodes);
}
template <class V>
void fields(V&& v, AdminReply& m) {
  v("id", m.id);
  v("is_done", m.is_done);
  v("text", m.text);
}
template <class V>
void fields(V&& v, ShutdownRequest& m) {
  v("saves", m.saves);
  v("why", m.why);
}

template <class V>
void fields(V&& v, AdminHello& m) {
  v("protocol", m.protocol);
  v("version", m.version);
}
template <class V>
void fields(V&& v, AdminRequest& m) {
  v("run_id", m.run_id);
  v("admin_command", m.order);
  v("mac", m.mac);
}
template <class V>
void fields(V&& v, Challenge& m) {
  v("nonce", m.nonce);
  v("id", m.id);
}

inline int64_t last_value(AdminCommandKind) {
  return static_cast<int64_t>(AdminCommandKind::Scale);
}

inline const char* name_of(const AdminCommand&) { return "admin_command"; }
inline const char* name_of(const AdminReply&) { return "admin_reply"; }
inline const char* name_of(const ShutdownRequest&) { return "shutdown_request"; }
inline const char* name_of(const AdminHello&) { return "admin_hello"; }
inline const char* name_of(const AdminRequest&) { return "admin_request"; }
inline const char* name_of(const Challenge&) { return "challenge"; }

}  // namespace cpprun::control

#include "agent/process/diagnostics/refused_connections.hpp"

#include <linux/filter.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>

namespace cpprun {
namespace {

constexpr size_t kBody = NLMSG_HDRLEN;
constexpr size_t kAttributes = kBody + NLMSG_ALIGN(sizeof(inet_diag_msg));
constexpr size_t kPeerPort =
    kBody + offsetof(inet_diag_msg, id) + offsetof(inet_diag_sockid, idiag_dport);

// Passes only messages about sockets with this peer port.
bool set_filter(int socket, uint16_t port) {
  std::array<sock_filter, 4> code{{
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kPeerPort),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

// The content of the attribute `type`; "": not there.
std::string_view attribute(std::string_view message, uint16_t type) {
  for (size_t at = kAttributes; at + sizeof(rtattr) <= message.size();) {
    rtattr head{};
    ::memcpy(&head, message.data() + at, sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > message.size() - at) return {};
    if (head.rta_type == type) return message.substr(at + sizeof head, head.rta_len - sizeof head);
    at += RTA_ALIGN(head.rta_len);
  }
  return {};
}

}  // namespace

UniqueFd watch_closed_sockets(uint16_t port) {
  const int kind = SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK;
  UniqueFd socket(::socket(AF_NETLINK, kind, NETLINK_SOCK_DIAG));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1u << (SKNLGRP_INET_TCP_DESTROY - 1) | 1u << (SKNLGRP_INET6_TCP_DESTROY - 1);
  const auto* place = reinterpret_cast<const sockaddr*>(&address);
  const bool is_made = socket.is_open() && set_filter(socket.get(), port) &&
                       ::bind(socket.get(), place, sizeof address) == 0;
  return is_made ? std::move(socket) : UniqueFd();
}

// The peer acknowledged the SYN of an established connection, so its count of acknowledged bytes is
// above 0.
bool is_refusal(std::string_view message) {
  const std::string_view info = attribute(message, INET_DIAG_INFO);
  uint64_t acknowledged = 0;
  constexpr size_t kAt = offsetof(tcp_info, tcpi_bytes_acked);
  if (info.size() < kAt + sizeof acknowledged) return false;
  ::memcpy(&acknowledged, info.data() + kAt, sizeof acknowledged);
  return acknowledged == 0;
}

}  // namespace cpprun

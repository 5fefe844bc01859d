#include "launcher/cpprunctl/jobs/agent_client.hpp"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "common/http/blocking_socket.hpp"
#include "common/limits/admin.hpp"
#include "common/machine/files.hpp"
#include "common/machine/sockets.hpp"
#include "common/text.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace cpprun::ctl {
namespace {

Error about(const LocalAgent& agent, const std::string& why) {
  return Error{ErrorKind::System, "the agent with pid " + std::to_string(agent.pid) + ": " + why};
}

// Connects; the agent's user.
Result<int64_t> reach(BlockingSocket& line, const LocalAgent& agent) {
  const std::optional<SocketAddress> address = abstract_address(agent.socket);
  if (!address) return about(agent, "its name is too long");
  if (Status ok = line.connect(address->get(), address->size); !ok) {
    return about(agent, "it can't be reached: " + ok.error().text);
  }
  // Any user may listen under such a name; only agents of this user and of root are trusted.
  ucred peer{};
  socklen_t length = sizeof peer;
  ::getsockopt(line.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &length);
  if (::geteuid() == 0 || peer.uid == ::geteuid() || peer.uid == 0) return int64_t{peer.uid};
  return about(agent, "it belongs to another user");
}

}  // namespace

// Columns: number, references, protocol, flags, type, state, inode, path. Accepted connections of a
// listener appear under its name too.
std::vector<LocalAgent> agents_in(const std::string& proc_net_unix) {
  std::vector<LocalAgent> found;
  std::istringstream lines(proc_net_unix);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(" @" + std::string(admin::kSocketPrefix));
    if (at == std::string::npos) continue;
    LocalAgent agent{0, line.substr(at + 2)};
    const std::string_view rest =
        std::string_view(agent.socket).substr(admin::kSocketPrefix.size());
    agent.pid = text::parse_int(rest.substr(0, rest.find('.'))).value_or(0);
    if (agent.pid > 0) found.push_back(std::move(agent));
  }
  const auto key = [](const LocalAgent& agent) { return std::pair(agent.pid, agent.socket); };
  std::ranges::sort(found, {}, key);
  const auto is_same = [](const auto& a, const auto& b) { return a.socket == b.socket; };
  found.erase(std::unique(found.begin(), found.end(), is_same), found.end());
  return found;
}

std::vector<LocalAgent> local_agents() {
  return agents_in(read_file("/proc/net/unix").value_or(""));
}

OpenQuery::OpenQuery(const LocalAgent& agent, Duration limit)
    : agent_(agent),
      socket_(std::make_unique<BlockingSocket>(
          ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), limit)) {}
OpenQuery::OpenQuery(OpenQuery&&) noexcept = default;
OpenQuery::~OpenQuery() = default;

Result<OpenQuery> OpenQuery::send(const LocalAgent& agent, const admin::AdminQuery& query,
                                  Duration limit) {
  OpenQuery made(agent, limit);
  const Result<int64_t> owner = reach(*made.socket_, agent);
  if (!owner) return owner.error();
  made.owner_ = *owner;
  std::string frame;
  control::append_frame(frame, admin::encode(query));
  if (Status ok = made.socket_->send(frame); !ok) return about(agent, ok.error().text);
  return made;
}

Result<std::string> OpenQuery::receive() {
  Result<std::string> four = socket_->receive(4);
  if (!four) return about(agent_, four.error().text);
  if (four->size() != 4) {
    return about(agent_, "it has hung up; it answers its own user and root only");
  }
  const auto bytes = control::frame_length(*four, limits::kAdminReplyBytes);
  if (!bytes) return about(agent_, "its answer has an impossible length");
  Result<std::string> body = socket_->receive(*bytes);
  if (!body) return about(agent_, body.error().text);
  if (const auto why = admin::refusal_reason(*body)) return Error{ErrorKind::Refused, *why};
  return body;
}

Result<std::string> ask(const LocalAgent& agent, const admin::AdminQuery& query, Duration limit) {
  Result<OpenQuery> query_sent = OpenQuery::send(agent, query, limit);
  if (!query_sent) return query_sent.error();
  return query_sent->receive();
}

Result<std::string> http_get(const Endpoint& endpoint, const std::string& path, Duration limit) {
  constexpr size_t kPageBytes = 64 << 20;
  Result<std::unique_ptr<BlockingSocket>> line = dial(endpoint, limit);
  if (!line) return line.error();
  const std::string where = to_string(endpoint) + ": ";
  // The server need not know the name by which the user reaches it.
  const Status sent =
      (*line)->send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  if (!sent) return Error{ErrorKind::System, where + sent.error().text};
  Result<std::string> answer = (*line)->receive(kPageBytes);
  if (!answer) return Error{ErrorKind::System, where + answer.error().text};
  const size_t body = answer->find("\r\n\r\n");
  if (!answer->starts_with("HTTP/1.1 200 ") || body == std::string::npos) {
    return Error{ErrorKind::Protocol, to_string(endpoint) + " has no " + path +
                                          "; is it the rendezvous port of a cpprun job?"};
  }
  return answer->substr(body + 4);
}

}  // namespace cpprun::ctl

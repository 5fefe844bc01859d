#include "agent/rendezvous/rendezvous_lines.hpp"

#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

using nlohmann::ordered_json;

constexpr int kDepth = 2;  // an object of words

std::string text_of(const ordered_json& request, const char* name) {
  const auto field = request.find(name);
  return field != request.end() && field->is_string() ? field->get<std::string>() : "";
}

std::string line_of(const ordered_json& event) { return dump_json(event) + "\n"; }

const char* name_of(RendezvousEnd how) {
  switch (how) {
    case RendezvousEnd::Succeeded: return "succeeded";
    case RendezvousEnd::Failed: return "failed";
    case RendezvousEnd::Left: return "left";
    case RendezvousEnd::NoConnection: return "no_connection";
    case RendezvousEnd::Timeout: return "timeout";
    case RendezvousEnd::Error: return "error";
  }
  return "error";
}

}  // namespace

Result<RendezvousRequest> parse_rendezvous_request(std::string_view line) {
  using What = RendezvousRequest::What;
  const auto request = parse_json<ordered_json>(line, kDepth);
  const std::string op = request.is_object() ? text_of(request, "op") : "";
  if (op == "next") return RendezvousRequest{What::Next, ""};
  if (op == "close") return RendezvousRequest{What::Close, ""};
  if (op == "fail") return RendezvousRequest{What::Fail, text_of(request, "why")};
  return Error{ErrorKind::Protocol, "no request: " + text::one_line(line, 80) +
                                        "\nhint: write {\"op\":\"next\"}, \"close\" or \"fail\""};
}

std::string round_line(const control::RankAssignment& round, const Endpoint& store) {
  return line_of({{"event", "round"},
                  {"round", round.round.value},
                  {"rank", round.group_rank},
                  {"world_size", round.group_size},
                  {"store_host", store.host},
                  {"store_port", store.port}});
}

std::string restart_line(const std::string& why) {
  return line_of({{"event", "restart"}, {"why", why}});
}

std::string end_line(RendezvousEnd how, const std::string& text) {
  return line_of({{"event", "end"}, {"how", name_of(how)}, {"text", text}});
}

}  // namespace cpprun

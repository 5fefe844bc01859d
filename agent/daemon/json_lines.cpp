#include "agent/daemon/json_lines.hpp"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/log/log.hpp"

namespace cpprun::json_lines {
namespace {

using nlohmann::ordered_json;

std::string line(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json begin(WallTime at, const char* event) {
  return {{"time_us", at.microseconds}, {"event", event}};
}

const char* name_of(agent::Finish::How how) {
  switch (how) {
    case agent::Finish::How::Success:
      return "success";
    case agent::Finish::How::Failure:
      return "failure";
    case agent::Finish::How::Error:
      return "error";
    case agent::Finish::How::Signal:
      return "signal";
    case agent::Finish::How::Stopped:
      return "stopped";
  }
  return "unknown";
}

// nlohmann writes recursively, and a worker may have left anything in its file.
bool is_shallow(const std::string& bytes) {
  constexpr int kDepthMax = 64;
  int depth = 0;
  for (char c : bytes) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDepthMax) return false;
  }
  return true;
}

ordered_json parse_if_shallow(const std::string& bytes) {
  return is_shallow(bytes) ? ordered_json::parse(bytes, nullptr, false) : ordered_json(nullptr);
}

}  // namespace

std::string round_started(WallTime at, const control::World& world) {
  ordered_json object = begin(at, "round_started");
  object["round"] = world.round.value;
  object["restart_count"] = world.restart_count;
  object["group_rank"] = world.group_rank;
  object["group_size"] = world.group_size;
  object["world_size"] = world.world_size;
  object["master"] = world.master_addr + ":" + std::to_string(world.master_port);
  return line(object);
}

std::string worker_ended(const WorkerEnd& end) {
  ordered_json object = begin(end.ended_at_wall, "worker_ended");
  object["rank"] = end.rank.value;
  object["local_rank"] = end.local_rank.value;
  object["pid"] = end.pid;
  object["exit_code"] = end.exit_code;
  object["has_core"] = end.has_core;
  object["is_oom_kill"] = end.is_oom_kill;
  object["is_stopped_by_us"] = end.is_stopped_by_us;
  if (end.error) object["error"] = end.error->message;
  return line(object);
}

std::string finished(WallTime at, const agent::Finish& finish) {
  ordered_json object = begin(at, "finished");
  object["outcome"] = name_of(finish.how);
  object["restarts_used"] = finish.restarts_used;
  if (!finish.text.empty()) object["text"] = finish.text;
  return line(object);
}

void copy_error_file(const WorkerEnd& root, const std::string& to) {
  std::ifstream in(root.error->path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ordered_json body = parse_if_shallow(bytes);
  bool is_nested = body.is_object() && body.contains("message") && body["message"].is_object();
  if (is_nested && root.exit_code != 0) body["message"]["errorCode"] = root.exit_code;
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  out << (is_nested ? line(body) : bytes);
  out.close();
  if (!out) log::warning("the root cause's error file could not be copied to '" + to + "'");
}

}  // namespace cpprun::json_lines

#include "rendezvous/protocol/admin/admin_protocol.hpp"

#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/limits/admin.hpp"
#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun::admin {
namespace {

using nlohmann::ordered_json;

Error broken(const std::string& why) {
  return Error{ErrorKind::Protocol, "this is no query of the admin protocol: " + why};
}

ordered_json json_of(const WorkerView& worker) {
  ordered_json json{{"rank", worker.rank}, {"local_rank", worker.local_rank}, {"pid", worker.pid},
                    {"step", nullptr},     {"heartbeat_age_s", nullptr},      {"step_s", nullptr}};
  if (const std::optional<Heartbeat>& progress = worker.progress) {
    json["step"] = progress->step;
    json["heartbeat_age_s"] = to_seconds(progress->age);
    if (progress->step_takes > Duration{}) json["step_s"] = to_seconds(progress->step_takes);
    json["collectives"] = progress->collectives;
    json["phase"] = progress->phase;
  }
  json["memory_bytes"] = json_or_null<ordered_json>(worker.memory_bytes);
  json["stdout"] = worker.stdout_file;
  json["stderr"] = worker.stderr_file;
  return json;
}

}  // namespace

const std::string& AdminQuery::parameter(const std::string& name) const {
  static const std::string kNone;
  const auto found = parameters.find(name);
  return found == parameters.end() ? kNone : found->second;
}

std::optional<int64_t> AdminQuery::number(const std::string& name) const {
  return text::parse_int(parameter(name));
}

std::string encode(const AdminQuery& query) {
  ordered_json json{{"verb", query.verb}};
  for (const auto& [name, text] : query.parameters) json[name] = text;
  return dump_json(json);
}

Result<AdminQuery> decode_query(std::string_view body) {
  const nlohmann::json object = nlohmann::json::parse(body, nullptr, false);
  bool is_flat = object.is_object() && object.size() <= limits::kAdminParameters;
  AdminQuery query;
  for (auto item = object.begin(); is_flat && item != object.end(); ++item) {
    const auto* text = item->get_ptr<const std::string*>();
    is_flat = item.key().size() <= limits::kNameBytes && text != nullptr &&
              text->size() <= limits::kAdminParameterBytes;
    if (is_flat) query.parameters.emplace(item.key(), *text);
  }
  if (!is_flat) return broken("it is no flat object of texts");
  query.verb = query.parameter("verb");
  query.parameters.erase("verb");
  if (query.verb.empty()) return broken("it has no verb");
  return query;
}

std::string done(const std::string& text) { return dump_json(ordered_json{{"done", text}}); }
std::string refusal(const std::string& why) { return dump_json(ordered_json{{"refused", why}}); }

std::optional<std::string> refusal_reason(std::string_view body) {
  constexpr std::string_view kFront = "{\"refused\":";
  if (!body.starts_with(kFront)) return std::nullopt;
  Result<AdminQuery> parameters =
      decode_query("{\"verb\":\"refused\"," + std::string(body.substr(1)));
  return parameters ? parameters->parameter("refused")
                    : "the agent gave no reason that can be read";
}

std::string encode(const NodeView& view) {
  ordered_json json{{"run_id", view.run_id},
                    {"node", view.node},
                    {"title", view.title},
                    {"pid", view.pid},
                    {"state", view.state},
                    {"coordinator", view.coordinator},
                    {"is_host", view.is_host},
                    {"round", view.round},
                    {"group_rank", view.group_rank},
                    {"group_size", view.group_size},
                    {"min_nodes", view.min_nodes},
                    {"world_size", view.world_size},
                    {"restarts_used", view.restarts_used},
                    {"max_restarts", view.max_restarts},
                    {"up_s", to_seconds(view.up)},
                    {"run_folder", view.run_folder},
                    {"snapshot_step", json_or_null<ordered_json>(view.snapshot_step)},
                    {"workers", ordered_json::array()}};
  for (const WorkerView& worker : view.workers) json["workers"].push_back(json_of(worker));
  return dump_json(json);
}

std::string encode(const std::vector<WorkerStack>& stacks) {
  ordered_json json{{"stacks", ordered_json::array()}};
  for (const WorkerStack& stack : stacks) {
    json["stacks"].push_back({{"rank", stack.rank}, {"pid", stack.pid}, {"text", stack.text}});
  }
  return dump_json(json);
}

}  // namespace cpprun::admin

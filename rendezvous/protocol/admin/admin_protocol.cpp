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
  return Error{ErrorKind::Protocol, "this is no question that an agent knows: " + why};
}

// Reads a flat object of strings and rejects everything else. Nothing nests, so nothing recurses.
class FlatReader : public nlohmann::json_sax<ordered_json> {
 public:
  std::map<std::string, std::string> parameters;

  bool start_object(std::size_t) override { return depth_++ == 0; }
  bool end_object() override { return true; }
  bool key(string_t& name) override {
    name_ = name;
    return name.size() <= limits::kNameBytes && parameters.size() < limits::kAdminParameters;
  }
  bool string(string_t& text) override {
    if (depth_ != 1 || text.size() > limits::kAdminParameterBytes) return false;
    parameters[name_] = text;
    return true;
  }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t) override { return false; }
  bool number_unsigned(number_unsigned_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  int depth_ = 0;
  std::string name_;
};

ordered_json json_of(const WorkerView& worker) {
  ordered_json json{{"rank", worker.rank}, {"local_rank", worker.local_rank}, {"pid", worker.pid}};
  const auto& progress = worker.progress;
  json["step"] = progress ? ordered_json(progress->step) : ordered_json(nullptr);
  json["heartbeat_age_s"] =
      progress ? ordered_json(to_seconds(progress->age)) : ordered_json(nullptr);
  const bool has_time = progress && progress->step_takes > Duration{};
  json["step_s"] =
      has_time ? ordered_json(to_seconds(progress->step_takes)) : ordered_json(nullptr);
  if (progress) {
    json["collectives"] = progress->collectives;
    json["phase"] = progress->phase;
  }
  json["memory_bytes"] =
      worker.memory_bytes ? ordered_json(*worker.memory_bytes) : ordered_json(nullptr);
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
  FlatReader reader;
  if (!ordered_json::sax_parse(body, &reader)) return broken("it is no flat object of texts");
  AdminQuery query{reader.parameters["verb"], reader.parameters};
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
                    {"world_size", view.world_size},
                    {"restarts_used", view.restarts_used},
                    {"max_restarts", view.max_restarts},
                    {"up_s", to_seconds(view.up)},
                    {"run_folder", view.run_folder}};
  json["snapshot_step"] =
      view.snapshot_step ? ordered_json(*view.snapshot_step) : ordered_json(nullptr);
  json["workers"] = ordered_json::array();
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

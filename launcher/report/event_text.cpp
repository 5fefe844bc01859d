#include "launcher/report/event_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json.hpp"
#include "common/shown_state.hpp"
#include "common/text_style.hpp"
#include "launcher/report/goodput_view.hpp"
#include "launcher/report/text_table.hpp"

namespace cpprun::ctl {
namespace {

using nlohmann::ordered_json;

// A field as text; "" if missing.
std::string text_of(const ordered_json& event, const char* name) {
  const auto field = event.find(name);
  if (field == event.end()) return "";
  if (field->is_string()) return field->get<std::string>();
  return dump_json(*field);
}

int64_t number_of(const ordered_json& event, const char* name) {
  const auto field = event.find(name);
  return field != event.end() && field->is_number_integer() ? field->get<int64_t>() : -1;
}

bool is_set(const ordered_json& event, const char* name) {
  const auto field = event.find(name);
  return field != event.end() && field->is_boolean() && field->get<bool>();
}

// In the machine's time zone, like the launcher's log lines.
std::string clock_of(const ordered_json& event) {
  const auto field = event.find("time_us");
  if (field == event.end() || !field->is_number_integer()) return "--:--:--.---";
  const auto microseconds = field->get<int64_t>();
  const time_t whole = microseconds / 1'000'000;
  tm local{};
  localtime_r(&whole, &local);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%H:%M:%S", &local);
  std::array<char, 8> part{};
  std::snprintf(part.data(), part.size(), ".%03d", static_cast<int>(microseconds / 1000 % 1000));
  return std::string(text.data()) + part.data();
}

std::string worker_of(const ordered_json& event) {
  return "rank " + text_of(event, "rank") + " (local rank " + text_of(event, "local_rank") +
         ", pid " + text_of(event, "pid") + ")";
}

std::string end_of_worker(const ordered_json& event) {
  std::string text = worker_of(event);
  const std::string signal = text_of(event, "signal");
  const std::string code = "code " + text_of(event, "exit_code");
  if (is_set(event, "is_stopped_by_us")) {
    text += " stopped (" + (signal.empty() ? code : signal) + ")";
  } else {
    text += signal.empty() ? " exited with " + code : " was killed by " + signal;
  }
  if (is_set(event, "is_oom_kill")) text += " (out of memory)";
  if (is_set(event, "has_core")) text += " (core dumped)";
  const std::string error = text_of(event, "error");
  return error.empty() ? text : text + ": " + error;
}

// ", node losses: 1 of 3"; "" if the event has no such budget.
std::string used_of(const ordered_json& event, const std::string& what, const char* used,
                    const char* max) {
  const std::string most = text_of(event, max);
  return most.empty() ? "" : ", " + what + ": " + text_of(event, used) + " of " + most;
}

// "1 node", "2 nodes".
std::string count_of(const ordered_json& event, const char* field, const std::string& noun) {
  const std::string number = text_of(event, field);
  return number + " " + noun + (number == "1" ? "" : "s");
}

std::string formed(const ordered_json& event) {
  return "round " + text_of(event, "round") + ": " + count_of(event, "world_size", "worker") +
         " on " + count_of(event, "group_size", "node") + ", this is node " +
         text_of(event, "group_rank") + "; master " + text_of(event, "master_addr") + ":" +
         text_of(event, "master_port") + "; restarts used: " + text_of(event, "restart_count") +
         " of " + text_of(event, "max_restarts") +
         used_of(event, "after hangs", "hang_restarts", "max_hangs") +
         used_of(event, "node losses", "node_losses", "max_node_losses");
}

std::string start_of_round(const ordered_json& event) {
  const std::string kept = text_of(event, "kept");
  if (kept.empty() || kept == "0") return ": all workers here are started";
  return ": " + kept + " of " + text_of(event, "workers") +
         " workers here stay, the others are replaced";
}

std::string decision(const ordered_json& event) {
  if (is_set(event, "is_success")) return "decided: all workers ended well";
  const std::string what = is_set(event, "is_resumable") ? "stopped: " : "failed: ";
  return "decided: " + what + text_of(event, "failure_summary");
}

std::string times_of(const ordered_json& event) {
  const bool is_whole = text_of(event, "until") == "first_step";
  std::string text = "round " + text_of(event, "round") +
                     (is_whole ? " had made its first step within " : " began within ") +
                     text_of(event, "total_ms") + " ms of ";
  text += text_of(event, "cause") == "start" ? "the start" : text_of(event, "cause");
  const auto phases = event.find("phases_ms");
  const char* before = ": ";
  if (phases == event.end() || !phases->is_object()) return text;
  for (const auto& [name, value] : phases->items()) {
    text += before + name + " " + text_of(*phases, name.c_str());
    before = ", ";
  }
  return text;
}

// "failed", "failed (error)".
std::string outcome_text(const std::string& outcome) {
  const bool is_plain = outcome == "success" || outcome == "failure" || outcome == "stopped";
  return name_of(shown_state_of_outcome(outcome)) + (is_plain ? "" : " (" + outcome + ")");
}

// Describes a known event; nothing for others.
std::optional<std::string> words(const ordered_json& event) {
  const std::string kind = text_of(event, "event");
  const std::string round = "round " + text_of(event, "round");
  if (kind == "run_started") {
    return "job '" + text_of(event, "run_id") + "' begins: " + text_of(event, "program") + ", " +
           count_of(event, "nproc", "worker") + " here (cpprun " + text_of(event, "version") +
           ", pid " + text_of(event, "pid") + ")";
  }
  if (kind == "waiting") return "waiting: " + text_of(event, "why");
  if (kind == "round_formed") return formed(event);
  if (kind == "snapshot_chosen") {
    return round + " resumes from the snapshot of step " + text_of(event, "step");
  }
  if (kind == "worker_started") return worker_of(event) + " started";
  if (kind == "worker_kept") {
    return worker_of(event) + " stays from the round before, where it completed step " +
           text_of(event, "step");
  }
  if (kind == "round_started") return round + start_of_round(event);
  if (kind == "worker_ready") return "local rank " + text_of(event, "local_rank") + " is ready";
  if (kind == "snapshot_complete") {
    return "snapshot of step " + text_of(event, "step") + " is complete: " + text_of(event, "path");
  }
  if (kind == "worker_exited") return end_of_worker(event);
  if (kind == "node_lost") return "a node is lost: " + text_of(event, "why");
  if (kind == "node_joined") return text_of(event, "why");
  if (kind == "round_stopping") return round + " stops: " + text_of(event, "why");
  if (kind == "round_stopped") {
    return round + (is_set(event, "regroups") ? ": the workers that stay have left it"
                                              : ": all workers here are gone");
  }
  if (kind == "round_ready") return round + ": all workers here are ready";
  if (kind == "timing") return times_of(event);
  if (kind == "goodput") {
    const std::optional<GoodputView> view = goodput_view(dump_json(event));
    return view ? std::optional(goodput_line(view->goodput)) : std::nullopt;
  }
  if (kind == "failure_summary") return "failure summary: " + text_of(event, "text");
  if (kind == "warning") return "warning: " + text_of(event, "text");
  if (kind == "job_result") return decision(event);
  if (kind == "finished") {
    return "finished: " + outcome_text(text_of(event, "outcome")) + ", exit code " +
           text_of(event, "exit_code");
  }
  return std::nullopt;
}

std::string fields_of(const ordered_json& event) {
  std::string text = text_of(event, "event") + ":";
  for (const auto& [name, value] : event.items()) {
    const bool is_shown_already =
        name == "event" || name == "time_us" || name == "mono_ns" || name == "node";
    if (!is_shown_already) text += " " + name + "=" + text_of(event, name.c_str());
  }
  return text;
}

// Nothing: the event is one of many.
std::optional<TextStyle> style_of_event(const ordered_json& event) {
  const std::string kind = text_of(event, "event");
  if (kind == "warning" || kind == "node_lost" || kind == "round_stopping") {
    return TextStyle::Warning;
  }
  if (kind == "failure_summary") return TextStyle::Error;
  if (kind == "worker_exited") {
    const bool is_bad = number_of(event, "exit_code") != 0 && !is_set(event, "is_stopped_by_us");
    return is_bad ? std::optional(TextStyle::Error) : std::nullopt;
  }
  if (kind == "finished") {
    return text_of(event, "outcome") == "success" ? TextStyle::Good : TextStyle::Error;
  }
  return std::nullopt;
}

// Workers can write to the files of their job, so a line may be anything. A value that is no
// object: it is no event.
ordered_json event_of(std::string_view line) {
  constexpr int kDepthMax = 8;
  return parse_json<ordered_json>(line, kDepthMax);
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return clean(std::move(text));
}

}  // namespace

std::optional<std::string> event_text(std::string_view line, bool is_verbose, bool has_color) {
  const ordered_json event = event_of(line);
  if (!event.is_object() || text_of(event, "event").empty()) return std::nullopt;
  if (!is_verbose && text_of(event, "event") == "timing") return std::nullopt;
  const std::string place = clock_of(event) + "  " + one_line(text_of(event, "node")) + "  ";
  const std::string text = one_line(words(event).value_or(fields_of(event)));
  const std::optional<TextStyle> style = style_of_event(event);
  return styled(TextStyle::Faint, place, has_color) +
         styled(style.value_or(TextStyle::Strong), text, has_color && style) + "\n";
}

void RunSummary::take(std::string_view line) {
  const ordered_json event = event_of(line);
  if (!event.is_object()) return;
  const std::string kind = text_of(event, "event");
  ended_us = std::max(ended_us, number_of(event, "time_us"));
  if (kind == "run_started") {
    run_id = text_of(event, "run_id");
    script = text_of(event, "program");
    max_restarts = number_of(event, "max_restarts");
    begun_us = number_of(event, "time_us");
  } else if (kind == "round_formed") {
    nodes = number_of(event, "group_size");
    workers = number_of(event, "world_size");
  } else if (kind == "failure_summary") {
    failure = text_of(event, "text");
  } else if (kind == "finished") {
    outcome = text_of(event, "outcome");
    exit_code = number_of(event, "exit_code");
    restarts_used = std::max<int64_t>(0, number_of(event, "restarts_used"));
  }
}

std::optional<RoundEvent> round_event(std::string_view line) {
  if (line.find("\"round\"") == std::string_view::npos) return std::nullopt;
  const ordered_json event = event_of(line);
  if (!event.is_object() || text_of(event, "event").empty()) return std::nullopt;
  return RoundEvent{text_of(event, "event"),   number_of(event, "time_us"),
                    number_of(event, "round"), number_of(event, "restart_count"),
                    number_of(event, "rank"),  number_of(event, "local_rank")};
}

}  // namespace cpprun::ctl

#include "common/faults/plan.hpp"

#include <cstdio>

#include "common/text.hpp"

namespace cpprun::faults {
namespace {

std::string shown_seconds(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(nanoseconds) / 1e9);
  return text;
}

std::string shown(const char* noun, const std::optional<TargetSelector>& selector) {
  if (!selector) return "";
  return std::string(" ") + (selector->number ? noun + (" " + std::to_string(*selector->number))
                                              : std::string("any ") + noun);
}

std::string when(const Fault& fault) {
  if (fault.every) return "every " + shown_seconds(fault.every->count()) + " on average";
  if (!fault.after_ns) return "";
  std::string text = "after " + shown_seconds(fault.after_ns->from);
  if (fault.after_ns->to != fault.after_ns->from) {
    text += " to " + shown_seconds(fault.after_ns->to);
  }
  return text;
}

void add_place(std::string& text, const char* name, const std::optional<Span>& number) {
  if (number) text += std::string(",") + name + "=" + std::to_string(number->from);
}

std::string program_text(const Fault& fault, size_t index, int64_t ranks, int64_t nodes) {
  std::string text = fault.is_of_program() ? name_of(fault.what) : "ask";
  text += ":fault=" + std::to_string(index);
  if (fault.rank) text += ",rank=" + std::to_string(fault.rank->among(ranks));
  if (fault.node) text += ",node=" + std::to_string(fault.node->among(nodes));
  add_place(text, "step", fault.step);
  add_place(text, "epoch", fault.epoch);
  add_place(text, "round", fault.round);
  add_place(text, "attempt", fault.attempt);
  if (fault.phase) text += std::string(",phase=") + name_of(*fault.phase);
  if (fault.what == FaultKind::Exit) text += ",code=" + std::to_string(fault.exit_code);
  if (fault.what == FaultKind::Slow)
    text += ",ms=" + std::to_string(fault.lasts.count() / 1'000'000);
  return text;
}

}  // namespace

bool is_inline(std::string_view value) {
  // As in worker programs, which skip empty parts (worker/faults.hpp).
  const size_t begin = value.find_first_not_of(';');
  if (begin == std::string_view::npos) return !value.empty();
  const std::string_view rest = value.substr(begin),
                         word = rest.substr(0, rest.find_first_of(":;"));
  return !word.empty() && word.find_first_of("/.") == std::string_view::npos;
}

std::string text_of(const Span& span) {
  const std::string from = std::to_string(span.from);
  return span.from == span.to ? from : from + " to " + std::to_string(span.to);
}

std::string describe(const Fault& fault) {
  std::vector<std::string> at;
  const auto add = [&at](const char* noun, const std::optional<Span>& number) {
    if (number) at.push_back(std::string(noun) + " " + text_of(*number));
  };
  add("training epoch", fault.epoch);
  add("step", fault.step);
  add("round", fault.round);
  add("attempt", fault.attempt);
  if (fault.phase) at.push_back(std::string("phase ") + name_of(*fault.phase));
  std::string text =
      std::string(name_of(fault.what)) + shown("rank", fault.rank) + shown("node", fault.node);
  if (!at.empty()) text += " at " + text::join(at, ", ");
  const std::string time = when(fault);
  return time.empty() ? text : text + " " + time;
}

std::string worker_text(const Plan& plan, int64_t ranks, int64_t nodes) {
  std::vector<std::string> all;
  for (size_t i = 0; i < plan.faults.size(); ++i) {
    const Fault& fault = plan.faults[i];
    if (fault.is_at_place()) all.push_back(program_text(fault, i, ranks, nodes));
  }
  all.emplace_back(
      "report");  // asks the program to report its first step, to compute the lost work
  return text::join(all, ";");
}

}  // namespace cpprun::faults

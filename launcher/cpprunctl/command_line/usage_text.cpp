#include "launcher/cpprunctl/command_line/usage_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.hpp"

namespace cpprun::ctl {
namespace {

// Commands of kubectl, docker, Slurm and ray.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kOtherTools{{
    {"describe", "status"},
    {"list", "ps"},
    {"list", "ls"},
    {"get", "ps"},
    {"jobs", "ps"},
    {"log", "logs"},
    {"kill", "stop"},
    {"cancel", "stop"},
    {"check", "doctor"},
}};

std::string unknown_argument(const std::string& argument, const std::vector<std::string>& options) {
  if (!argument.starts_with('-')) return "unexpected argument '" + argument + "'";
  const std::string name = argument.substr(0, argument.find('='));
  if (name == "--job") return "unknown option --job\nhint: the job's name stands by itself here";
  const std::string near = text::nearest(name, options);
  return "unknown option " + name + (near.empty() ? "" : "\nhint: did you mean " + near + "?");
}

// The rest of the message after `beginning`; "" if it begins in another way.
std::string rest_after(const std::string& message, std::string_view beginning) {
  return message.starts_with(beginning) ? message.substr(beginning.size()) : "";
}

// "a,b" as "a, b".
std::string spaced(const std::string& list) { return text::join(text::split(list, ','), ", "); }

std::string reworded(const std::string& message, const std::vector<std::string>& options) {
  for (const std::string_view beginning : {"The following argument was not expected: ",
                                           "The following arguments were not expected: "}) {
    const std::string unknown = rest_after(message, beginning);
    if (!unknown.empty()) return unknown_argument(text::split(unknown, ' ').front(), options);
  }
  const std::string unread = rest_after(message, "Could not convert: ");
  const size_t equals = unread.find(" = ");
  if (equals != std::string::npos) {
    return "invalid " + unread.substr(0, equals) + " '" + unread.substr(equals + 3) + "'";
  }
  const size_t choice = message.find(" not in {");
  const size_t colon = message.find(": ");
  if (choice != std::string::npos && colon < choice && message.ends_with('}')) {
    return "invalid " + message.substr(0, colon) + " '" +
           message.substr(colon + 2, choice - colon - 2) + "'\nhint: it is one of " +
           spaced(message.substr(choice + 9, message.size() - choice - 10));
  }
  if (colon != std::string::npos && message.find(" required ", colon) != std::string::npos) {
    return message.substr(0, colon) + " needs a value";
  }
  const size_t needs = message.find(" requires ");
  if (needs != std::string::npos) {
    return message.substr(0, needs) + " needs " + message.substr(needs + 10);
  }
  const size_t excludes = message.find(" excludes ");
  if (excludes != std::string::npos) {
    return message.substr(0, excludes) + " and " + message.substr(excludes + 10) +
           " do not go together";
  }
  if (message == "A subcommand is required") return "a command is missing";
  const size_t required = message.find(" is required");
  if (required != std::string::npos) return message.substr(0, required) + " is missing";
  return message;
}

}  // namespace

std::string nearest_command(std::string_view name, const std::vector<std::string>& commands) {
  const auto* known = std::ranges::find_if(kOtherTools, [&](const auto& pair) {
    return pair.first == name && std::ranges::find(commands, pair.second) != commands.end();
  });
  if (known != kOtherTools.end()) return std::string(known->second);
  return text::nearest(name, commands);
}

std::string usage_text(const std::string& message, const std::string& command,
                       const std::vector<std::string>& options) {
  return reworded(message, options) + "\nusage: cpprunctl " + command +
         " --help explains the command";
}

}  // namespace cpprun::ctl

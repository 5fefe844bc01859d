// A simulated machine for tests of the command line: two CPUs, no GPU, python3 and a few files.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "launcher/options/options.hpp"

namespace cpprun::test {

using Strings = std::vector<std::string>;

struct Machine {
  Strings variables;
  int cpus = 2;
  int usable_cpus = 2;
  std::string shared_folder;
  GpuProbe gpus;
  Topology topology;
  std::map<std::string, FileFacts> files;
  std::map<std::string, std::string> texts;  // of the files that are read

  // Not inlined: g++ 12 warns wrongly of uninitialised members of temporaries.
  [[gnu::noinline]] Machine() : variables{"PATH=/bin:/opt/bin", "HOME=/root"} {
    gpus.why_none = "no NVIDIA driver on this machine";
    files["/opt/bin/python3"] = {FileKind::Program, true};
    files["/bin/sh"] = {FileKind::Program, true};
    files["train.py"] = {FileKind::Other, false};
    files["/tmp"] = {FileKind::Directory, true};
    files["/scratch"] = {FileKind::Directory, true};
    for (const char* name : {"own.pem", "own.key", "ca.pem"}) {
      files[name] = {FileKind::Other, false};
    }
    texts["secret"] = "0123456789abcdef";
    texts["short"] = "0123456789abcde";
    texts["/urls/ops"] = "https://hooks.example.org/T0\n";
    texts["plan.json"] = R"({"plan":[{"at":{"rank":1,"epoch":2},"do":"kill"}]})";
  }

  Environment environment() const {
    Environment made;
    made.variables = variables;
    made.count_cpus = [n = cpus] { return n; };
    made.count_usable_cpus = [n = usable_cpus] { return n; };
    made.probe_gpus = [g = gpus] { return g; };
    made.read_topology = [t = topology] { return t; };
    made.look_at = [f = files](const std::string& path) {
      auto found = f.find(path);
      return found == f.end() ? FileFacts{} : found->second;
    };
    made.read_file = [t = texts](const std::string& path, size_t) -> std::optional<std::string> {
      auto found = t.find(path);
      return found == t.end() ? std::nullopt : std::optional(found->second);
    };
    made.is_shared_folder = [f = shared_folder](const std::string& path) { return path == f; };
    made.read_secret = [t = texts](const std::string& path) -> decltype(JobSecret::read(path)) {
      auto found = t.find(path);
      if (found == t.end()) return Error{ErrorKind::BadValue, path + " is not there"};
      return JobSecret::copy_of(found->second);
    };
    made.make_uuid = [] { return std::string("a-fresh-id"); };
    return made;
  }

  Machine with(const Strings& more) const {
    Machine other = *this;
    other.variables.insert(other.variables.end(), more.begin(), more.end());
    return other;
  }
};

inline Result<OptionsResult> ask(const Strings& args, const Machine& machine = {}) {
  return read_options(args, machine.environment());
}

// The launch of `args`; fails the test if there is none.
inline Launch launch_of(const Strings& args, const Machine& machine = {}) {
  Result<OptionsResult> options_result = ask(args, machine);
  if (!options_result.ok()) {
    ADD_FAILURE() << options_result.error().text;
    return {};
  }
  if (const Launch* launch = std::get_if<Launch>(&*options_result)) return *launch;
  ADD_FAILURE() << "a text was shown";
  return {};
}

inline AgentConfig config_of(const Strings& args, const Machine& machine = {}) {
  return launch_of(args, machine).config;
}

// Options before the script train.py.
inline Strings line(Strings options) {
  options.push_back("train.py");
  return options;
}

// The error of `args`; fails the test if there is none.
inline Error error_of(const Strings& args, const Machine& machine = {}) {
  Result<OptionsResult> options_result = ask(args, machine);
  if (!options_result.ok()) return options_result.error();
  ADD_FAILURE() << "accepted";
  return {ErrorKind::System, ""};
}

inline std::string shown_by(const Strings& args, const Machine& machine = {}) {
  Result<OptionsResult> options_result = ask(args, machine);
  if (options_result.ok() && std::holds_alternative<TextToShow>(*options_result))
    return std::get<TextToShow>(*options_result).text;
  ADD_FAILURE() << "nothing was shown";
  return "";
}

inline bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace cpprun::test

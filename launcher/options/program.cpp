// The workers' program: an interpreter with the script, or the program itself. A missing script is
// reported here once, instead of by each worker.
#include <algorithm>
#include <cctype>
#include <utility>

#include "agent/core/string_template.hpp"
#include "common/text.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

// PYTHON_EXEC unchanged, else the first python3 or python on PATH.
Result<std::string> find_python(const ParsedOptions& options, const Environment& environment) {
  if (std::string_view chosen = environment.text("PYTHON_EXEC"); !chosen.empty()) {
    if (!find_program(environment, chosen).empty()) return std::string(chosen);
    return bad_value("PYTHON_EXEC=" + std::string(chosen) + " is not an executable program");
  }
  for (const char* name : {"python3", "python"}) {
    if (std::string found = find_program(environment, name); !found.empty()) return found;
  }
  return bad_value("no python3 on PATH to run " + options.script +
                   "\nhint: set PYTHON_EXEC, or start a program without Python by --no-python");
}

Error missing_script(const std::string& script, const Environment& environment) {
  const std::string text = "the script " + script + " does not exist\nhint: ";
  if (script.find('/') == std::string::npos && !find_program(environment, script).empty()) {
    return bad_value(text + "to start the program " + script + " from PATH add --no-python");
  }
  if (script.starts_with('-')) return bad_value(text + "options come before the --");
  return bad_value(text + "check the path, or use -m for a module");
}

// For an ELF file that would be passed to Python.
Error no_script(const ParsedOptions& options, const FileFacts& facts) {
  std::string what = options.script + " is a program, not a Python script";
  if (!facts.is_executable) return bad_value(what + ", and not executable\nhint: chmod +x it");
  return bad_value(what +
                   (options.run_path ? "\nhint: leave out --run-path" : "\nhint: add --no-python"));
}

// An executable that is not Python's starts directly, even without --no-python.
bool starts_by_itself(const ParsedOptions& options, const FileFacts& facts) {
  if (options.module || options.run_path || !facts.is_executable || options.script.ends_with(".py"))
    return false;
  return facts.kind == FileKind::Program || facts.kind == FileKind::Script;
}

// Why exec would not start the program.
std::string unstartable(const std::string& program, const Environment& environment) {
  const bool has_slash = program.find('/') != std::string::npos;
  const FileFacts here = environment.look_at(program);
  const bool is_folder = here.kind == FileKind::Directory;
  const bool is_file = here.kind != FileKind::Missing && !is_folder;
  if (has_slash && !is_file)
    return program + (is_folder ? ": it is a folder" : ": there is no such file");
  const std::string path = has_slash ? program : "./" + program;
  const std::string what =
      program + (has_slash ? ": it is not executable" : ": no such program on PATH") + "\nhint: ";
  if (!is_file || here.is_executable) return what + "one in this folder is written " + path;
  if (program.ends_with(".py")) return what + "leave out --no-python for a Python script";
  return what + "make it executable by chmod +x " + path + (has_slash ? "" : ", and write it so");
}

Status use_program(const ParsedOptions& options, const Environment& environment,
                   WorkerConfig& workers) {
  if (find_program(environment, options.script).empty()) {
    return bad_value(unstartable(options.script, environment));
  }
  workers.program = {options.script};
  return {};
}

// `-m train.py`: Python would run the script as a part of its search for a module "py" in it, and
// then fail. Empty: the name may be a module's.
std::string script_as_module(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) return name;
  constexpr std::string_view kEnding = ".py";
  if (!name.ends_with(kEnding)) return "";
  std::string module = name.substr(0, name.size() - kEnding.size());
  std::ranges::replace(module, '.', '/');
  const bool is_script = environment.look_at(module + ".py").kind != FileKind::Missing &&
                         environment.look_at(module).kind != FileKind::Directory;
  return is_script ? module + ".py" : "";
}

Error no_module(const std::string& name, const std::string& script) {
  std::string module = script;
  if (module.ends_with(".py")) module.resize(module.size() - 3);
  if (module.starts_with("./")) module.erase(0, 2);
  std::ranges::replace(module, '/', '.');
  const bool has_module =
      module.find("..") == std::string::npos && !module.starts_with('.') && !module.ends_with('.');
  return bad_value("-m takes the name of a module, not of a file: " + name +
                   "\nhint: leave out -m" + (has_module ? ", or write -m " + module : ""));
}

// A name with the macro ${local_rank} gives each worker its own file. Empty: all use one file.
std::vector<std::string> scripts_by_rank(const std::string& script, int nproc) {
  std::vector<std::string> scripts;
  for (int rank = 0; rank < nproc; ++rank) {
    scripts.push_back(agent::safe_substitute(script, {{"local_rank", std::to_string(rank)}}));
    if (scripts.back() == script) return {};
  }
  return scripts;
}

Status use_python(const ParsedOptions& options, const Environment& environment,
                  WorkerConfig& workers) {
  bool is_module = options.module && !options.run_path;
  if (const std::string path = is_module ? script_as_module(options.script, environment) : "";
      !path.empty()) {
    return no_module(options.script, path);
  }
  const std::vector<std::string> by_rank = scripts_by_rank(options.script, workers.nproc);
  for (const std::string& script : is_module ? std::vector<std::string>{} : by_rank) {
    if (environment.look_at(script).kind == FileKind::Missing) {
      return missing_script(script, environment);
    }
  }
  // "-" is Python's name for standard input; Python itself looks modules up.
  if (!is_module && by_rank.empty() && options.script != "-") {
    FileFacts facts = environment.look_at(options.script);
    if (facts.kind == FileKind::Missing) return missing_script(options.script, environment);
    if (starts_by_itself(options, facts)) {
      bool has_slash = options.script.find('/') != std::string::npos;
      workers.program = {has_slash ? options.script : "./" + options.script};
      return {};
    }
    if (facts.kind == FileKind::Program) return no_script(options, facts);
  }
  Result<std::string> python = find_python(options, environment);
  if (!python) return python.error();
  workers.program = {std::move(*python), "-u"};
  if (is_module) workers.program.push_back("-m");
  workers.program.push_back(options.script);
  return {};
}

// A dotted name in any alphabet.
bool is_module_name(const std::string& name) {
  const auto is_fit = [](char c) {
    return c == '.' || c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  return !name.empty() && name.front() != '.' && name.back() != '.' &&
         name.find("..") == std::string::npos && std::ranges::all_of(name, is_fit);
}

Result<PreloadConfig> read_preload(const ParsedOptions& options) {
  constexpr size_t kMost = 64;             // modules
  constexpr size_t kMostBytes = 8 * 1024;  // all names, which go to the process in one message
  using enum PreloadConfig::Mode;
  if (options.preload == "off" || options.preload.empty()) return PreloadConfig{};
  if (options.preload == "auto") return PreloadConfig{Auto, {}};
  PreloadConfig preload{List, text::split(options.preload, ',')};
  for (const std::string& name : preload.modules) {
    if (is_module_name(name) && options.preload.size() <= kMostBytes &&
        preload.modules.size() <= kMost) {
      continue;
    }
    return bad_value(options.shown("preload", options.preload) +
                     " is no valid value\nhint: write the names of up to 64 Python modules, such "
                     "as torch,numpy; or auto, "
                     "or off");
  }
  return preload;
}

void use_progress(const ParsedOptions& options, Launch& launch) {
  if (options.progress != "auto") return;
  launch.counts_steps = launch.config.workers.program.size() > 1;  // python -u ...
  if (launch.counts_steps) return;
  launch.warnings.push_back(options.shown("progress", options.progress) +
                            " has no effect: the workers are no Python programs");
}

Status use_preload(const ParsedOptions& options, Launch& launch) {
  Result<PreloadConfig> preload = read_preload(options);
  if (!preload) return preload.error();
  WorkerConfig& workers = launch.config.workers;
  const bool is_python = workers.program.size() > 1;  // python -u ...
  if (is_python) {
    workers.preload = std::move(*preload);
  } else if (preload->mode != PreloadConfig::Mode::Off) {
    workers.preload.mode = PreloadConfig::Mode::Unused;
    launch.warnings.push_back(options.shown("preload", options.preload) +
                              " has no effect: the workers are no Python programs");
  }
  return {};
}

Status choose_program(const ParsedOptions& options, const Environment& environment,
                      WorkerConfig& workers) {
  if (options.run_path || !options.no_python) return use_python(options, environment, workers);
  if (options.module) {
    return bad_value(
        "--no-python and --module do not go together: Python runs the module\nhint: leave one out");
  }
  return use_program(options, environment, workers);
}

}  // namespace

Status resolve_program(const ParsedOptions& options, const Environment& environment,
                       Launch& launch) {
  WorkerConfig& workers = launch.config.workers;
  workers.title = options.script;
  workers.arguments = options.script_arguments;
  if (Status chosen = choose_program(options, environment, workers); !chosen) return chosen;
  use_progress(options, launch);
  return use_preload(options, launch);
}

}  // namespace cpprun

#include "launcher/cpprunctl/command_line/snapshot_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "launcher/cpprunctl/command_line/validators.hpp"
#include "launcher/cpprunctl/snapshot/snapshot.hpp"

namespace cpprun::ctl {
namespace {

constexpr const char* kAnyPath = "a folder of snapshots, a snapshot, or a .pt file";
constexpr const char* kFolder = "a folder of snapshots";

class SnapshotCommands {
 public:
  SnapshotCommands(CLI::App& app, RunCommand& run)
      : group_(app.add_subcommand("snapshot", "Look at snapshots, check, convert, remove")),
        run_(run) {
    group_->require_subcommand(1);
  }

  void add_readers() {
    CLI::App* ls = add("ls", "List snapshots, or what is in one", kAnyPath, snapshot_ls);
    CLI::App* show = add("show", "Show the contents of a snapshot", kAnyPath, snapshot_show);
    CLI::App* verify =
        add("verify", "Read everything and compare the checksums; exit 1 if any differs", kAnyPath,
            snapshot_verify);
    CLI::App* latest = add("latest", "Print the model file of the newest complete snapshot",
                           kFolder, snapshot_latest);
    latest->add_flag("--folder", options_->wants_folder, "print the snapshot's folder instead");
    for (CLI::App* command : {ls, show, verify, latest}) {
      command->add_flag("--json", options_->is_json, "print JSON");
    }
  }

  void add_writers() {
    CLI::App* convert = add("convert", "Write a snapshot in another form",
                            "a snapshot or a .pt file", snapshot_convert);
    convert
        ->add_option("to", options_->to,
                     "x.pt: one file; x.safetensors: the model's tensors; else a folder of "
                     "snapshots. A file that is there stays as <to>.prev")
        ->required();
    convert->add_option("--strip-prefix", options_->strip_prefix,
                        "take this from the front of names, where all have it");
    convert
        ->add_option("--step", options_->step,
                     "optimizer steps done, for a file without this number")
        ->check(from_zero());
    add("mark-bad", "Set a snapshot and all later ones aside, so that nothing resumes from them",
        "a snapshot", snapshot_mark_bad);
    CLI::App* prune =
        add("prune", "Remove old snapshots, and what dead writers left", kFolder, snapshot_prune);
    prune->add_option("--keep", options_->keep, "how many of the newest stay")
        ->required()
        ->check(above_zero());
    prune
        ->add_option("--keep-every", options_->keep_every,
                     "those of each so many steps stay as well")
        ->check(above_zero());
  }

 private:
  using Function = Status (*)(const SnapshotCommandOptions&);

  CLI::App* add(const char* name, const char* help, const char* path, Function function) {
    CLI::App* command = group_->add_subcommand(name, help);
    command->add_option("path", options_->path, path)->required();
    command->callback([&run = run_, options = options_, function] {
      run = [options, function] { return exit_code_of(function(*options)); };
    });
    return command;
  }

  CLI::App* const group_;
  RunCommand& run_;
  const std::shared_ptr<SnapshotCommandOptions> options_ =
      std::make_shared<SnapshotCommandOptions>();
};

}  // namespace

void add_snapshot_commands(CLI::App& app, RunCommand& run) {
  SnapshotCommands commands(app, run);
  commands.add_readers();
  commands.add_writers();
}

}  // namespace cpprun::ctl

// The form of cpprunctl's help texts.
#pragma once

namespace CLI {
class App;
}

namespace cpprun::ctl {

// Shows readable placeholders of values. Requires: `app` has no commands yet; they inherit this.
void set_help_formatter(CLI::App& app);

// Groups the commands by purpose. Requires: `app` has all its commands.
void group_commands(CLI::App& app);

}  // namespace cpprun::ctl

// cpprunctl: what operators type. Options in, exit code out; the verbs are in files of their own.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "common/limits.hpp"
#include "common/log/log.hpp"
#include "common/text.hpp"
#include "launcher/ctl/serve.hpp"

namespace {

constexpr int kUsage = 2;

int fail(const cpprun::Error& error) {
  for (const std::string& line : cpprun::text::split(error.text, '\n')) cpprun::log::error(line);
  return cpprun::exit_code(error);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Operate cpprun jobs and servers.", "cpprunctl");
  app.require_subcommand(1);
  app.set_version_flag("--version", "cpprunctl " CPPRUN_VERSION);
  cpprun::ServeOptions serve{"", cpprun::limits::kStoreValueBytes >> 20};
  CLI::App* serve_verb = app.add_subcommand(
      "serve", "Serve torch's TCPStore, cpprun's control protocol and HTTP on one port");
  serve_verb->add_option("--listen", serve.listen, "HOST:PORT; port 0 takes a free one")
      ->required();
  serve_verb
      ->add_option("--store-value-limit-mb", serve.store_value_limit_mb,
                   "largest value of the store, in MiB")
      ->check(CLI::Range(size_t{1}, size_t{1} << 20))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (const char* level = std::getenv("LOGLEVEL")) {
    cpprun::log::set_level(cpprun::log::parse_level(level));
  }
  cpprun::Status done = cpprun::serve(serve);
  return done.ok() ? 0 : fail(done.error());
}

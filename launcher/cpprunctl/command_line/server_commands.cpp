#include "launcher/cpprunctl/command_line/server_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "common/limits/store.hpp"
#include "launcher/cpprunctl/command_line/validators.hpp"
#include "launcher/cpprunctl/rendezvous_client.hpp"
#include "launcher/cpprunctl/serve.hpp"

namespace cpprun::ctl {
namespace {

constexpr double kLongestTimeout = 1e9;  // seconds

void add_serve(CLI::App& app, RunCommand& run) {
  const auto options = std::make_shared<ServeOptions>(
      ServeOptions{.listen = "", .store_value_limit_mb = limits::kStoreValueBytes >> 20});
  CLI::App* serve = app.add_subcommand(
      "serve", "Serve torch's TCPStore, cpprun's control protocol and HTTP on one port");
  serve->add_option("--listen", options->listen, "HOST:PORT; port 0 takes a free one")->required();
  serve
      ->add_option("--store-value-limit-mb", options->store_value_limit_mb,
                   "largest value of the store, in MiB")
      ->check(within(1, 1 << 20))
      ->capture_default_str();
  serve
      ->add_option("--store-memory-mb", options->store_memory_mb,
                   "memory of all stores and their clients' buffers, in MiB; default: a quarter of "
                   "the machine's memory or of the cgroup's limit")
      ->check(within(1, limits::kStoreMemoryMax >> 20));
  serve
      ->add_option("--allowed-host", options->allowed_hosts,
                   "a further name by which HTTP clients may ask; may be repeated")
      ->option_text("NAME ...")
      ->expected(1)
      ->take_all();
  add_tls_options(serve, options->tls);
  serve->callback(
      [&run, options] { run = [options] { return exit_code_of(cpprun::serve(*options)); }; });
}

int run_rendezvous_client(const RendezvousClientCommand& command) {
  const Result<int> code = rendezvous_client(command);
  return code ? *code : exit_code_of(Status(code.error()));
}

void add_rendezvous_client(CLI::App& app, RunCommand& run) {
  const auto options = std::make_shared<RendezvousClientCommand>();
  CLI::App* client = app.add_subcommand(
      "rendezvous-client",
      "Take part in a job for another launcher, by JSON lines; torchrun's plug-in starts it");
  client->add_option("--rdzv-endpoint", options->endpoint, "HOST[:PORT] of the coordinator")
      ->required();
  client->add_option("--rdzv-id", options->run_id, "name of the job")->capture_default_str();
  client->add_option("--nnodes", options->nnodes, "N or MIN:MAX")->capture_default_str();
  client->add_option("--local-addr", options->local_addr,
                     "address at which other nodes reach this one; default: found");
  const std::pair<const char*, double*> timeouts[] = {
      {"--join-timeout", &options->join_timeout},
      {"--connect-timeout", &options->connect_timeout},
      {"--last-call-timeout", &options->last_call_timeout}};
  for (const auto& [name, value] : timeouts) {
    client->add_option(name, *value, "seconds")->check(within(0, kLongestTimeout));
  }
  add_tls_options(client, options->tls);
  client->callback(
      [&run, options] { run = [options] { return run_rendezvous_client(*options); }; });
}

}  // namespace

void add_server_commands(CLI::App& app, RunCommand& run) {
  add_serve(app, run);
  add_rendezvous_client(app, run);
}

}  // namespace cpprun::ctl

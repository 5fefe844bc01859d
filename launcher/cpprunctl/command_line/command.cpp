#include "launcher/cpprunctl/command_line/command.hpp"

#include <CLI/CLI.hpp>

#include "common/exit_code.hpp"
#include "common/log/log.hpp"

namespace cpprun::ctl {

int exit_code_of(const Status& done) {
  if (done.ok()) return kSuccess;
  log::failure(done.error().text);
  return exit_code(done.error());
}

int exit_code_of(const Result<bool>& is_well) {
  if (!is_well) return exit_code_of(Status(is_well.error()));
  return *is_well ? kSuccess : kFailure;
}

void add_tls_options(CLI::App* command, TlsOptions& options) {
  command->add_option("--secret-file", options.secret_file,
                      "the secret of the job; default: CPPRUN_SECRET_FILE, else CPPRUN_SECRET");
  command->add_option("--tls-cert", options.cert,
                      "instead of a secret: a certificate, with --tls-key and --tls-ca");
  command->add_option("--tls-key", options.key, "its private key");
  command->add_option("--tls-ca", options.ca, "the CA of the job's members");
}

}  // namespace cpprun::ctl

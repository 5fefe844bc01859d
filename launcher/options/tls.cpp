// The job's secret, or certificates.
#include "launcher/options/resolve.hpp"

namespace cpprun {
namespace {

Status read_certificates(const ParsedOptions& options, const Environment& environment,
                         TlsConfig& tls) {
  const std::pair<const char*, const std::string*> files[] = {
      {"tls-cert", &options.tls_cert}, {"tls-key", &options.tls_key}, {"tls-ca", &options.tls_ca}};
  size_t given = 0;
  for (const auto& [name, path] : files) {
    if (path->empty()) continue;
    ++given;
    const FileKind kind = environment.look_at(*path).kind;
    if (kind == FileKind::Missing || kind == FileKind::Directory) {
      return bad_value(options.shown(name, *path) + ": there is no such file");
    }
  }
  if (given != 0 && given != std::size(files)) {
    return bad_value(
        "--tls-cert, --tls-key and --tls-ca belong together: both sides show a certificate, and "
        "both check it\nhint: give all three, or none");
  }
  tls.cert_file = options.tls_cert;
  tls.key_file = options.tls_key;
  tls.ca_file = options.tls_ca;
  return {};
}

// The way to a secret under Slurm without the user's help.
Status choose_step_secret(const ParsedOptions& options, const Environment& environment,
                          Launch& launch) {
  const std::string& word = options.slurm_secret;
  const std::string& step = launch.config.cluster.step_id;
  if (step.empty() || word == "never" || launch.config.rendezvous.max_nodes < 2) return {};
  const std::string folder(environment.text("SLURM_SUBMIT_DIR"));
  if (folder.empty() && word == "always")
    return bad_value("--slurm-secret=always: SLURM_SUBMIT_DIR is not set");
  const bool has_secret =
      word == "always" || (!folder.empty() && environment.is_shared_folder(folder));
  std::string& file = launch.config.rendezvous.tls.step_secret_file;
  if (has_secret) file = folder + "/.cpprun-secret-" + step;
  // Where all else is given, nothing is printed.
  const bool is_inferred = !launch.inferred.empty();
  if (is_inferred) launch.add_inferred(has_secret ? "a secret of its own" : "no secret");
  return {};
}

}  // namespace

Status resolve_tls(const ParsedOptions& options, const Environment& environment, Launch& launch) {
  TlsConfig& tls = launch.config.rendezvous.tls;
  if (Status ok = read_certificates(options, environment, tls); !ok) return ok;
  const std::string file_variable(environment.text(kSecretFileVariable));
  if (!tls.cert_file.empty()) {
    if (options.secret_file.empty()) return {};
    return bad_value(options.shown("secret-file", options.secret_file) +
                     " and --tls-cert are two ways for the same\nhint: give one of them");
  }
  Result<std::shared_ptr<const JobSecret>> secret = choose_secret(
      options.secret_file, file_variable, environment.secret, environment.read_secret);
  if (!secret) return secret.error();
  tls.secret = std::move(*secret);
  return tls.secret ? Status() : choose_step_secret(options, environment, launch);
}

}  // namespace cpprun

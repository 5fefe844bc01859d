#include "launcher/cpprunctl/tls_options.hpp"

#include <cstdlib>
#include <utility>

namespace cpprun {

Result<std::shared_ptr<const JobTls>> load_job_tls(const TlsOptions& options,
                                                   const std::string& run_id) {
  TlsCredentials credentials;
  const bool has_any = !options.cert.empty() || !options.key.empty() || !options.ca.empty();
  const bool has_all = !options.cert.empty() && !options.key.empty() && !options.ca.empty();
  if (has_any && (!has_all || !options.secret_file.empty())) {
    return Error{ErrorKind::Usage,
                 "give --tls-cert, --tls-key and --tls-ca, all three, or --secret-file"};
  }
  if (has_all) {
    credentials.certificate.path = options.cert;
    credentials.key.path = options.key;
    credentials.ca.path = options.ca;
  } else {
    auto variable = take_secret_variable();
    if (!variable) return variable.error();
    const char* file = std::getenv(kSecretFileVariable);
    auto secret = choose_secret(options.secret_file, file == nullptr ? "" : file, *variable);
    if (!secret) return secret.error();
    credentials.secret = std::move(*secret);
  }
  if (!credentials.are_given()) return std::shared_ptr<const JobTls>();
  return JobTls::load(std::move(credentials), run_id);
}

}  // namespace cpprun

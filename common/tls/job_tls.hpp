// JobTls: TLS 1.3 between the agents of a job, and the tools that connect to its coordinator. A
// peer proves that it belongs to the job by the job's secret (an external pre-shared key; no
// certificates), or by a certificate of the job's CA. Never lower than TLS 1.3, no tickets, no
// early data; keys are agreed anew by ECDHE for each connection.
//
// With a secret the key of a connection is
//   HKDF-SHA256(secret, salt "cpprun-psk-1", info ROLE " " RUN_ID)
// under the identity "cpprun-psk-1 ROLE RUN_ID". ROLE is the server's, so that a recorded or
// reflected connection to one kind of server means nothing to another.
//
// Any thread.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "common/tls/job_secret.hpp"
#include "common/tls/tls_context.hpp"
#include "common/tls/tls_stream.hpp"

namespace cpprun {

enum class TlsRole { Coordinator, Agent };  // of the server

// By what the members of a job know each other: a secret, or files; never both.
struct TlsCredentials {
  std::shared_ptr<const JobSecret> secret{};  // null: none
  TlsFile certificate{"--tls-cert", ""};      // "": none
  TlsFile key{"--tls-key", ""};
  TlsFile ca{"--tls-ca", ""};

  bool are_given() const { return secret || !certificate.path.empty(); }
};

class JobTls : public std::enable_shared_from_this<JobTls> {
 public:
  // Loads OpenSSL and the files. Errors: there is no OpenSSL; files that can't be read or do not
  // match.
  static Result<std::shared_ptr<const JobTls>> load(TlsCredentials credentials, std::string run_id);

  // A new connection to a server of this role.
  std::unique_ptr<TlsStream> connect(TlsRole role) const;
  // A connection that a server of this role has accepted. Clients of any run id may come: with the
  // same secret, several jobs may meet at one server.
  std::unique_ptr<TlsStream> accept(TlsRole role) const;

  JobTls(TlsCredentials credentials, std::string run_id);  // use load()

 private:
  std::unique_ptr<TlsStream> begin(const TlsContext& context, TlsRole role) const;
  Status set_up(std::unique_ptr<TlsContext>& context, TlsStream::Side side);

  const TlsCredentials credentials_;
  const std::string run_id_;
  std::unique_ptr<TlsContext> client_;
  std::unique_ptr<TlsContext> server_;
};

}  // namespace cpprun

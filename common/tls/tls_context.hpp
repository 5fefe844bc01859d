// TlsContext: the settings of TLS connections: versions, trusted certificates, the own one. Shared
// by all connections; after it is set up, any thread may begin connections with it.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "common/tls/tls_stream.hpp"

struct ssl_ctx_st;

namespace cpprun {

// A PEM file, and the option that names it, for errors: "--tls-ca".
struct TlsFile {
  std::string option;
  std::string path;
};

class TlsContext {
 public:
  using Side = TlsStream::Side;

  // `lowest`: TLS1_2_VERSION or TLS1_3_VERSION of OpenSSL.
  static Result<std::unique_ptr<TlsContext>> make(Side side, int lowest);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;

  // Both sides must show a certificate that these sign. Without a path: the machine's own.
  Status trust(const TlsFile& ca);
  Status use_certificate(const TlsFile& certificate, const TlsFile& key);

  // A connection of a client. The server needs a certificate for `host`, a name or a numeric
  // address. Error: no certificate can be for such an address, or there is no memory.
  static Result<std::unique_ptr<TlsStream>> connect(std::shared_ptr<const TlsContext> context,
                                                    const std::string& host);

  ssl_ctx_st* get() const { return context_; }
  const OpenSsl& api() const { return api_; }
  Side side() const { return side_; }

 private:
  TlsContext(const OpenSsl& api, ssl_ctx_st* context, Side side)
      : api_(api), context_(context), side_(side) {}

  const OpenSsl& api_;
  ssl_ctx_st* context_;
  const Side side_;
};

}  // namespace cpprun

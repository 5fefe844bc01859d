#include "common/tls/tls_context.hpp"

#include "common/machine/sockets.hpp"
#include "common/tls/openssl.hpp"

namespace cpprun {
namespace {

Error bad_file(const OpenSsl& api, const TlsFile& file) {
  return Error{ErrorKind::BadValue, file.option + "=" + file.path + ": " + api.newest_error()};
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::make(Side side, int lowest) {
  Result<const OpenSsl*> found = OpenSsl::load();
  if (!found) return found.error();
  const OpenSsl& api = **found;
  api.ERR_clear_error();
  SSL_CTX* context =
      api.SSL_CTX_new(side == Side::Client ? api.TLS_client_method() : api.TLS_server_method());
  if (context == nullptr) return Error{ErrorKind::System, "OpenSSL: " + api.newest_error()};
  std::unique_ptr<TlsContext> made(new TlsContext(api, context, side));
  api.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, lowest, nullptr);
  // Idle connections hold no record buffers.
  api.SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, nullptr);
  api.SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  const int demand = side == Side::Server ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  api.SSL_CTX_set_verify(context, SSL_VERIFY_PEER | demand, nullptr);
  return made;
}

TlsContext::~TlsContext() { api_.SSL_CTX_free(context_); }

Status TlsContext::trust(const TlsFile& ca) {
  api_.ERR_clear_error();
  if (ca.path.empty()) {
    api_.SSL_CTX_set_default_verify_paths(context_);
  } else if (api_.SSL_CTX_load_verify_locations(context_, ca.path.c_str(), nullptr) != 1) {
    return bad_file(api_, ca);
  }
  return {};
}

Status TlsContext::use_certificate(const TlsFile& certificate, const TlsFile& key) {
  api_.ERR_clear_error();
  if (api_.SSL_CTX_use_certificate_chain_file(context_, certificate.path.c_str()) != 1) {
    return bad_file(api_, certificate);
  }
  const bool has_key =
      api_.SSL_CTX_use_PrivateKey_file(context_, key.path.c_str(), SSL_FILETYPE_PEM) == 1;
  if (!has_key || api_.SSL_CTX_check_private_key(context_) != 1) return bad_file(api_, key);
  return {};
}

Result<std::unique_ptr<TlsStream>> TlsContext::connect(std::shared_ptr<const TlsContext> context,
                                                       const std::string& host) {
  const OpenSsl& api = context->api();
  SSL* session = api.SSL_new(context->get());
  if (session == nullptr) return Error{ErrorKind::System, "OpenSSL: " + api.newest_error()};
  auto stream = std::make_unique<TlsStream>(api, session, TlsStream::Side::Client,
                                            TlsDemand::Nothing, std::move(context));
  X509_VERIFY_PARAM* wanted = api.SSL_get0_param(session);
  const bool is_numeric = tcp_address(host, 0).has_value();
  const int is_set = is_numeric
                         ? api.X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str())
                         : api.X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
  // Without it OpenSSL would accept the certificate of any host.
  if (is_set != 1) {
    return Error{ErrorKind::BadValue, "no certificate can be for '" + host +
                                          "'; give a name, or an address without a scope"};
  }
  if (!is_numeric) {
    api.SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 const_cast<char*>(host.c_str()));
  }
  return stream;
}

}  // namespace cpprun

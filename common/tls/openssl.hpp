// OpenSSL, loaded at run time when TLS is needed. Linked, it would cost every start a millisecond
// and every binary 2 MB. Only files that configure TLS include this header.
#pragma once

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <string>

#include "common/result.hpp"

namespace cpprun {

// The functions that are used; OpenSSL 1.1.1 and 3 have all of them.
// clang-format off
#define CPPRUN_OF_OPENSSL(X)                                                                    \
  X(TLS_client_method) X(TLS_server_method) X(SSL_CTX_new) X(SSL_CTX_free) X(SSL_CTX_ctrl)      \
  X(SSL_CTX_set_verify) X(SSL_CTX_set_options) X(SSL_CTX_set_default_verify_paths)              \
  X(SSL_CTX_load_verify_locations) X(SSL_CTX_use_certificate_chain_file)                        \
  X(SSL_CTX_use_PrivateKey_file) X(SSL_CTX_check_private_key)                                   \
  X(SSL_CTX_set_session_id_context) X(SSL_CTX_set_ciphersuites) X(SSL_CTX_set_num_tickets)      \
  X(SSL_CTX_set_psk_use_session_callback) X(SSL_CTX_set_psk_find_session_callback) X(SSL_new)   \
  X(SSL_free) X(SSL_ctrl) X(SSL_set_bio) X(SSL_set_connect_state) X(SSL_set_accept_state)       \
  X(SSL_set_ex_data) X(SSL_get_ex_data) X(SSL_do_handshake) X(SSL_read) X(SSL_write)            \
  X(SSL_shutdown) X(SSL_get_error) X(SSL_get0_param) X(SSL_get_verify_result)                   \
  X(SSL_session_reused) X(SSL_version) X(SSL_SESSION_new) X(SSL_SESSION_free)                   \
  X(SSL_SESSION_set1_master_key) X(SSL_SESSION_set_cipher)                                      \
  X(SSL_SESSION_set_protocol_version) X(SSL_CIPHER_find) X(X509_VERIFY_PARAM_set1_host)         \
  X(X509_VERIFY_PARAM_set1_ip_asc) X(X509_verify_cert_error_string) X(BIO_new) X(BIO_s_mem)     \
  X(BIO_read) X(BIO_write) X(BIO_ctrl_pending) X(ERR_peek_error) X(ERR_get_error)               \
  X(ERR_clear_error) X(ERR_reason_error_string) X(EVP_sha256) X(EVP_PKEY_CTX_new_id)            \
  X(EVP_PKEY_CTX_free) X(EVP_PKEY_derive_init) X(EVP_PKEY_CTX_ctrl) X(EVP_PKEY_derive)   \
  X(OpenSSL_version_num)
// clang-format on

struct OpenSsl {
#define CPPRUN_MEMBER(name) decltype(&::name) name = nullptr;
  CPPRUN_OF_OPENSSL(CPPRUN_MEMBER)
#undef CPPRUN_MEMBER

  // Loads the system's library once. Thread-safe.
  static Result<const OpenSsl*> load();

  // SSL_R_... of an error code. OpenSSL 1.1 packs codes in another way than the headers of 3 do.
  int reason_of(unsigned long code) const;  // NOLINT: OpenSSL's own type
  // OpenSSL's text for the last error, for people.
  std::string newest_error() const;
};

}  // namespace cpprun

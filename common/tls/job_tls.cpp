#include "common/tls/job_tls.hpp"

#include <string.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>

#include "common/check.hpp"
#include "common/tls/openssl.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kLabel = "cpprun-psk-1";
constexpr size_t kKeyBytes = 32;
constexpr size_t kIdentityBytes = 1024;  // a run id has at most 256
constexpr int kSelf = 0;                 // index of OpenSSL's ex_data that is free for applications
// Both have SHA-256, the hash of the pre-shared key.
constexpr const char* kCiphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::array<uint8_t, 2> kAes128GcmSha256{0x13, 0x01};
// The first is used; P-256 for peers that allow no other. The second list is for a machine that
// knows no X25519, as in FIPS mode.
constexpr const char* kGroups[] = {"X25519:P-256", "P-256"};

const char* name_of(TlsRole role) { return role == TlsRole::Coordinator ? "coordinator" : "agent"; }

std::string identity_of(TlsRole role, const std::string& run_id) {
  return std::string(kLabel) + " " + name_of(role) + " " + run_id;
}

const unsigned char* octets_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Overwritten at the end.
struct Key {
  std::array<uint8_t, kKeyBytes> bytes{};
  ~Key() { ::explicit_bzero(bytes.data(), bytes.size()); }
};

// RFC 5869, by OpenSSL.
bool derive(const OpenSsl& api, std::span<const uint8_t> secret, std::string_view info, Key& key) {
  EVP_PKEY_CTX* context = api.EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr);
  if (context == nullptr) return false;
  const auto set = [&](int command, const void* data, size_t size) {
    // -1: any key type, any operation. EVP_PKEY_OP_DERIVE is another number in OpenSSL 1.1.
    return api.EVP_PKEY_CTX_ctrl(context, -1, -1, command, static_cast<int>(size),
                                 const_cast<void*>(data)) > 0;
  };
  size_t size = key.bytes.size();
  const bool is_done = api.EVP_PKEY_derive_init(context) > 0 &&
                       set(EVP_PKEY_CTRL_HKDF_MD, api.EVP_sha256(), 0) &&
                       set(EVP_PKEY_CTRL_HKDF_SALT, kLabel.data(), kLabel.size()) &&
                       set(EVP_PKEY_CTRL_HKDF_KEY, secret.data(), secret.size()) &&
                       set(EVP_PKEY_CTRL_HKDF_INFO, info.data(), info.size()) &&
                       api.EVP_PKEY_derive(context, key.bytes.data(), &size) > 0;
  api.EVP_PKEY_CTX_free(context);
  return is_done && size == key.bytes.size();
}

// What the callbacks of a connection need.
struct PskSide {
  const OpenSsl* api;
  std::shared_ptr<const JobSecret> secret;
  std::string identity;  // client: its own; server: the prefix of the client's
  std::shared_ptr<const void> owner;
};

// Null: OpenSSL has no memory.
SSL_SESSION* session_of(SSL* connection, const PskSide& side, std::string_view identity) {
  const OpenSsl& api = *side.api;
  Key key;
  if (!derive(api, side.secret->bytes(), identity.substr(kLabel.size() + 1), key)) return nullptr;
  SSL_SESSION* session = api.SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  const SSL_CIPHER* cipher = api.SSL_CIPHER_find(connection, kAes128GcmSha256.data());
  const bool is_set =
      cipher != nullptr &&
      api.SSL_SESSION_set1_master_key(session, key.bytes.data(), key.bytes.size()) == 1 &&
      api.SSL_SESSION_set_cipher(session, cipher) == 1 &&
      api.SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (is_set) return session;
  api.SSL_SESSION_free(session);
  return nullptr;
}

// The callbacks get no argument of ours, and OpenSSL's function table is the same for all.
const PskSide& side_of(SSL* connection) {
  static const OpenSsl& api = **OpenSsl::load();
  return *static_cast<const PskSide*>(api.SSL_get_ex_data(connection, kSelf));
}

extern "C" int cpprun_use_psk(SSL* connection, const EVP_MD* hash, const unsigned char** identity,
                              size_t* size, SSL_SESSION** session) {
  static_cast<void>(hash);  // SHA-256 in all of kCiphers
  const PskSide& side = side_of(connection);
  *session = session_of(connection, side, side.identity);
  if (*session == nullptr) return 0;
  *identity = octets_of(side.identity);
  *size = side.identity.size();
  return 1;
}

// Without a session the handshake fails, since the server has no certificate.
extern "C" int cpprun_find_psk(SSL* connection, const unsigned char* identity, size_t size,
                               SSL_SESSION** session) {
  *session = nullptr;
  const PskSide& side = side_of(connection);
  const std::string_view shown(reinterpret_cast<const char*>(identity), size);
  if (size > kIdentityBytes || !shown.starts_with(side.identity)) return 1;
  *session = session_of(connection, side, shown);
  return *session != nullptr ? 1 : 0;
}

}  // namespace

JobTls::JobTls(TlsCredentials credentials, std::string run_id)
    : credentials_(std::move(credentials)), run_id_(std::move(run_id)) {}

Result<std::shared_ptr<const JobTls>> JobTls::load(TlsCredentials credentials, std::string run_id) {
  CPPRUN_CHECK(credentials.are_given());
  auto made = std::make_shared<JobTls>(std::move(credentials), std::move(run_id));
  if (Status ok = made->set_up(made->client_, TlsStream::Side::Client); !ok) return ok.error();
  if (Status ok = made->set_up(made->server_, TlsStream::Side::Server); !ok) return ok.error();
  return std::shared_ptr<const JobTls>(std::move(made));
}

Status JobTls::set_up(std::unique_ptr<TlsContext>& context, TlsStream::Side side) {
  Result<std::unique_ptr<TlsContext>> made = TlsContext::make(side, TLS1_3_VERSION);
  if (!made) return made.error();
  context = std::move(*made);
  const OpenSsl& api = context->api();
  SSL_CTX* settings = context->get();
  api.SSL_CTX_set_options(settings, SSL_OP_NO_TICKET);
  api.SSL_CTX_set_num_tickets(settings, 0);
  // OpenSSL demands one of servers that verify peers; at clients it must be that of the session,
  // and a pre-shared key has none.
  if (side == TlsStream::Side::Server) {
    api.SSL_CTX_set_session_id_context(settings, octets_of(kLabel), kLabel.size());
  }
  if (!credentials_.secret) {
    if (Status ok = context->trust(credentials_.ca); !ok) return ok;
    return context->use_certificate(credentials_.certificate, credentials_.key);
  }
  const auto use_groups = [&](const char* names) {
    return api.SSL_CTX_ctrl(settings, SSL_CTRL_SET_GROUPS_LIST, 0, const_cast<char*>(names)) == 1;
  };
  const bool has_groups = std::any_of(std::begin(kGroups), std::end(kGroups), use_groups);
  if (!has_groups || api.SSL_CTX_set_ciphersuites(settings, kCiphers) != 1) {
    return Error{ErrorKind::System,
                 "OpenSSL of this machine refuses the settings of TLS 1.3: " + api.newest_error()};
  }
  side == TlsStream::Side::Client
      ? api.SSL_CTX_set_psk_use_session_callback(settings, cpprun_use_psk)
      : api.SSL_CTX_set_psk_find_session_callback(settings, cpprun_find_psk);
  return {};
}

std::unique_ptr<TlsStream> JobTls::connect(TlsRole role) const { return begin(*client_, role); }
std::unique_ptr<TlsStream> JobTls::accept(TlsRole role) const { return begin(*server_, role); }

std::unique_ptr<TlsStream> JobTls::begin(const TlsContext& context, TlsRole role) const {
  const OpenSsl& api = context.api();
  SSL* session = api.SSL_new(context.get());
  if (session == nullptr) throw std::bad_alloc();
  if (!credentials_.secret) {
    return std::make_unique<TlsStream>(api, session, context.side(), TlsDemand::Nothing,
                                       shared_from_this());
  }
  const bool is_client = context.side() == TlsStream::Side::Client;
  auto side = std::make_shared<PskSide>(PskSide{
      &api, credentials_.secret, identity_of(role, is_client ? run_id_ : ""), shared_from_this()});
  api.SSL_set_ex_data(session, kSelf, side.get());
  return std::make_unique<TlsStream>(api, session, context.side(), TlsDemand::PreSharedKey,
                                     std::move(side));
}

}  // namespace cpprun

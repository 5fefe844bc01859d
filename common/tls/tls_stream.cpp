#include "common/tls/tls_stream.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "common/check.hpp"
#include "common/limits/tls.hpp"
#include "common/tls/openssl.hpp"

namespace cpprun {
namespace {

// What OpenSSL's reasons mean to a user. The first that fits counts.
struct Meaning {
  int reason;
  const char* text;
};
constexpr Meaning kMeanings[] = {
    {SSL_R_WRONG_VERSION_NUMBER,
     "it does not speak TLS: it was started without the job's secret, or is an older cpprun"},
    {SSL_R_HTTP_REQUEST, "it speaks HTTP without TLS"},
    {SSL_R_BINDER_DOES_NOT_VERIFY, "it has another secret"},
    {SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER, "it has another secret"},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR, "it has another secret"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "it accepts neither this secret nor this certificate: one side has a secret and the other "
     "certificates, or they are no cpprun of one job"},
    {SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM,
     "it shows no secret of this job: one side has a secret and the other certificates"},
    {SSL_R_NO_SHARED_CIPHER,
     "it shows no secret of this job: one side has a secret and the other certificates"},
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "it shows no certificate"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "it wants a certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
     "it reports that our certificate has expired, or is not valid yet: check the certificate's "
     "dates and both clocks"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA,
     "it does not trust our certificate: both sides need the same CA"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "it does not accept our certificate"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "it speaks no TLS 1.3"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "it speaks no TLS 1.3"},
};

}  // namespace

TlsStream::TlsStream(const OpenSsl& api, ssl_st* session, Side side, TlsDemand demand,
                     std::shared_ptr<const void> keeper)
    : api_(api),
      session_(session),
      side_(side),
      demand_(demand),
      keeper_(std::move(keeper)),
      in_(api.BIO_new(api.BIO_s_mem())),
      out_(api.BIO_new(api.BIO_s_mem())) {
  api_.SSL_set_bio(session_, in_, out_);  // takes ownership of both
  if (in_ == nullptr || out_ == nullptr) {
    api_.SSL_free(session_);
    throw std::bad_alloc();
  }
  side_ == Side::Client ? api_.SSL_set_connect_state(session_)
                        : api_.SSL_set_accept_state(session_);
}

TlsStream::~TlsStream() { api_.SSL_free(session_); }

void TlsStream::feed(std::span<const uint8_t> bytes) {
  // What comes after the end is not read.
  if (state_ == State::Failed || state_ == State::Ended || bytes.empty()) return;
  if (state_ == State::Handshake) fed_ += bytes.size();
  if (state_ == State::Handshake && fed_ > limits::kTlsHandshakeBytes) {
    return fail(std::string("its TLS handshake has no end"));
  }
  const int taken = api_.BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
  if (taken != static_cast<int>(bytes.size())) fail(std::string("no memory is left for TLS"));
}

TlsStream::State TlsStream::shake_hands() {
  if (state_ != State::Handshake) return state_;
  api_.ERR_clear_error();
  const int result = api_.SSL_do_handshake(session_);
  if (result != 1) {
    fail(result);
    return state_;
  }
  const bool has_psk =
      api_.SSL_session_reused(session_) == 1 && api_.SSL_version(session_) == TLS1_3_VERSION;
  if (demand_ == TlsDemand::PreSharedKey && !has_psk) {
    fail(std::string("it proves no secret of this job"));
  } else {
    state_ = State::Ready;
  }
  return state_;
}

size_t TlsStream::read(std::span<uint8_t> room) {
  if (state_ != State::Ready || room.empty()) return 0;
  api_.ERR_clear_error();
  const auto most = static_cast<int>(std::min(room.size(), size_t{1} << 30));
  const int size = api_.SSL_read(session_, room.data(), most);
  if (size > 0) return static_cast<size_t>(size);
  fail(size);
  return 0;
}

bool TlsStream::write(std::span<const uint8_t> bytes) {
  if (state_ == State::Failed) return false;
  if (bytes.empty()) return true;
  CPPRUN_CHECK(state_ != State::Handshake);
  api_.ERR_clear_error();
  // A memory buffer takes everything.
  const int size = api_.SSL_write(session_, bytes.data(), static_cast<int>(bytes.size()));
  if (size == static_cast<int>(bytes.size())) return true;
  fail(size);
  return state_ != State::Failed;
}

void TlsStream::end_output() {
  if (state_ == State::Ready || state_ == State::Ended) api_.SSL_shutdown(session_);
}

size_t TlsStream::output_size() const { return api_.BIO_ctrl_pending(out_); }

size_t TlsStream::take_output(std::span<uint8_t> room) {
  const int taken = api_.BIO_read(out_, room.data(), static_cast<int>(room.size()));
  return taken > 0 ? static_cast<size_t>(taken) : 0;
}

std::string TlsStream::take_output() {
  std::string bytes(output_size(), '\0');
  bytes.resize(take_output({reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}));
  return bytes;
}

// `result` of an OpenSSL call that has not succeeded.
void TlsStream::fail(int result) {
  switch (api_.SSL_get_error(session_, result)) {
    case SSL_ERROR_WANT_READ: return;
    case SSL_ERROR_ZERO_RETURN: state_ = State::Ended; return;
    default: return fail(reason());
  }
}

void TlsStream::fail(std::string why) {
  state_ = State::Failed;
  why_ = std::move(why);
}

std::string TlsStream::reason() const {
  const long verified = api_.SSL_get_verify_result(session_);  // NOLINT: OpenSSL's own type
  // Unspecified: a pre-shared key, without certificates.
  if (verified != X509_V_OK && verified != X509_V_ERR_UNSPECIFIED) {
    const std::string text = std::string("its certificate is not trusted: ") +
                             api_.X509_verify_cert_error_string(verified);
    const bool is_about_time =
        verified == X509_V_ERR_CERT_HAS_EXPIRED || verified == X509_V_ERR_CERT_NOT_YET_VALID;
    return text + (is_about_time ? " by this machine's clock" : "");
  }
  const int code = api_.reason_of(api_.ERR_peek_error());
  for (const Meaning& meaning : kMeanings) {
    if (meaning.reason == code) {
      api_.ERR_clear_error();
      return meaning.text;
    }
  }
  return api_.newest_error();
}

}  // namespace cpprun

#include "rendezvous/client/etcd/tls.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>
#include <vector>

#include "rendezvous/client/etcd/etcd_client.hpp"

namespace cpprun::etcd {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr size_t kRoom = 16 * 1024;  // one TLS record

// One operation at a time: the handshake, then a write or a read. OpenSSL works on memory buffers,
// and this class moves their bytes to and from the socket.
class TlsTransport final : public SocketTransport,
                           public std::enable_shared_from_this<TlsTransport> {
 public:
  TlsTransport(const OpenSsl& api, SSL* session, std::unique_ptr<tcp::socket> socket)
      : SocketTransport(std::move(socket)), api_(api), session_(session) {
    in_ = api_.BIO_new(api_.BIO_s_mem());
    out_ = api_.BIO_new(api_.BIO_s_mem());
    api_.SSL_set_bio(session_, in_, out_);  // takes ownership of both
    api_.SSL_set_connect_state(session_);
  }
  ~TlsTransport() override { api_.SSL_free(session_); }

  void shake_hands(std::function<void(const error_code&, const std::string& why)> done) {
    step([this] { return api_.SSL_do_handshake(session_); },
         [this, done = std::move(done)](const error_code& error, int) {
           done(error, error ? why(error) : "");
         });
  }

  void write(std::span<const char> bytes, Sent sent) override {
    step([this,
          bytes] { return api_.SSL_write(session_, bytes.data(), static_cast<int>(bytes.size())); },
         [sent = std::move(sent)](const error_code& error, int) { sent(error); });
  }

  void read(std::span<char> room, Got got) override {
    step([this,
          room] { return api_.SSL_read(session_, room.data(), static_cast<int>(room.size())); },
         [got = std::move(got)](const error_code& error, int size) {
           got(error, error ? 0 : static_cast<size_t>(size));
         });
  }

  std::string why(const error_code& error) const override {
    const long verified = api_.SSL_get_verify_result(session_);  // NOLINT: OpenSSL's own type
    if (verified != X509_V_OK) {
      return std::string("its certificate is not believed: ") +
             api_.X509_verify_cert_error_string(verified) +
             " (--rdzv-conf=cacert=FILE says whom to believe)";
    }
    if (error != asio::error::access_denied) return "no TLS: " + error.message();
    return "no TLS: " + reason_;
  }

 private:
  using RpcCall = std::function<int()>;
  using Done = std::function<void(const error_code&, int)>;

  void step(RpcCall call, Done done) {
    api_.ERR_clear_error();
    const int result = call();
    const int state = result > 0 ? SSL_ERROR_NONE : api_.SSL_get_error(session_, result);
    const bool wants_more = state == SSL_ERROR_WANT_READ;
    error_code error;
    if (state == SSL_ERROR_ZERO_RETURN) error = asio::error::eof;
    if (state != SSL_ERROR_NONE && !wants_more && !error) error = asio::error::access_denied;
    if (error == asio::error::access_denied) reason_ = api_.newest_error();
    if (api_.BIO_ctrl_pending(out_) > 0) return send(wants_more, error, result, call, done);
    if (wants_more) return receive(std::move(call), std::move(done));
    asio::post(socket().get_executor(), [self = shared_from_this(), done, error, result] {
      if (!self->is_closed()) done(error, result);
    });
  }

  void send(bool wants_more, const error_code& outcome, int result, RpcCall call, Done done) {
    outgoing_.resize(api_.BIO_ctrl_pending(out_));
    api_.BIO_read(out_, outgoing_.data(), static_cast<int>(outgoing_.size()));
    asio::async_write(socket(), asio::buffer(outgoing_),
                      [=, self = shared_from_this()](error_code error, size_t) {
                        if (self->is_closed()) return;
                        if (wants_more && !error) return self->receive(call, done);
                        done(outcome ? outcome : error, result);
                      });
  }

  void receive(RpcCall call, Done done) {
    socket().async_read_some(
        asio::buffer(incoming_), [=, self = shared_from_this()](error_code error, size_t size) {
          if (self->is_closed()) return;
          if (error) return done(error, 0);
          self->api_.BIO_write(self->in_, self->incoming_.data(), static_cast<int>(size));
          self->step(call, done);
        });
  }

  const OpenSsl& api_;
  SSL* session_;
  BIO* in_ = nullptr;
  BIO* out_ = nullptr;
  std::array<char, kRoom> incoming_{};
  std::vector<char> outgoing_;
  std::string reason_;
};

Error bad_file(const OpenSsl& api, const std::string& what, const std::string& file) {
  return Error{ErrorKind::BadValue, "--rdzv-conf " + what + "=" + file + ": " + api.newest_error()};
}

Status configure(const OpenSsl& api, SSL_CTX* context, const TlsFiles& files) {
  api.ERR_clear_error();
  api.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  api.SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (files.ca.empty()) {
    api.SSL_CTX_set_default_verify_paths(context);
  } else if (api.SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1) {
    return bad_file(api, "cacert", files.ca);
  }
  if (files.cert.empty()) return {};
  if (api.SSL_CTX_use_certificate_chain_file(context, files.cert.c_str()) != 1) {
    return bad_file(api, "cert", files.cert);
  }
  const bool has_key =
      api.SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) == 1;
  if (!has_key || api.SSL_CTX_check_private_key(context) != 1) {
    return bad_file(api, "key", files.key);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<Tls>> load_tls(const TlsFiles& files) {
  Result<const OpenSsl*> found = OpenSsl::load();
  if (!found) return found.error();
  const OpenSsl& api = **found;
  SSL_CTX* context = api.SSL_CTX_new(api.TLS_client_method());
  if (context == nullptr) return Error{ErrorKind::System, "OpenSSL: " + api.newest_error()};
  auto tls = std::make_shared<Tls>(api, context);
  if (Status ok = configure(api, context, files); !ok) return ok.error();
  return tls;
}

std::shared_ptr<Transport> Tls::start(std::unique_ptr<tcp::socket> socket, const std::string& host,
                                      Done done) {
  SSL* session = api_.SSL_new(context_);
  X509_VERIFY_PARAM* wanted = api_.SSL_get0_param(session);
  error_code no_address;
  asio::ip::make_address(host, no_address);
  if (!no_address) {
    api_.X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str());
  } else {
    api_.X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
    api_.SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(host.c_str()));
  }
  auto transport = std::make_shared<TlsTransport>(api_, session, std::move(socket));
  transport->shake_hands(
      [transport, done = std::move(done)](const error_code& error, const std::string& why) {
        done(error ? nullptr : transport, why);
      });
  return transport;
}

}  // namespace cpprun::etcd

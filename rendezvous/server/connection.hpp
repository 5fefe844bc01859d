// TcpConnection: the server's side of one TCP connection, or of the socket pair of a client in this
// process. Internal to rendezvous/server; sessions
// see Connection.
// Callbacks, no coroutine: at most one read and one wait for writability are pending. States: Open,
// then Closing (sends all queued bytes and a FIN, then discards input until the peer's FIN), then
// Dead. The server's table holds it until Dead; pending operations hold it a little longer and find
// it Dead. Thread: the server's loop.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "rendezvous/server/buffers.hpp"
#include "rendezvous/server/handler_memory.hpp"
#include "rendezvous/server/peer_log.hpp"
#include "rendezvous/server/session.hpp"
#include "rendezvous/server/tls_link.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class TcpConnection;

// What a connection needs from its server.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  // Makes the session for a connection's first bytes. Null: close the connection, or, if
  // `needs_more` is set, call again with more bytes.
  virtual std::unique_ptr<Session> make_session(TcpConnection& connection,
                                                std::span<const uint8_t> bytes,
                                                bool& needs_more) = 0;
  virtual void begin_batch() = 0;
  // Settles every connection that has something to send or must end.
  virtual void end_batch() = 0;
  // Calls resume_read() after the other ready connections had their turn. A read right after a
  // reply would find nothing, since the peer has not seen the reply yet.
  virtual void schedule_read(TcpConnection& connection) = 0;
  // Settle `connection` at the end of this batch, or soon if no batch is open.
  virtual void on_dirty(TcpConnection& connection) = 0;
  // The write side is being shut down; the connection waits for the peer's FIN. The host bounds
  // that time.
  virtual void on_lingering(TcpConnection& connection) = 0;
  virtual void on_dead(TcpConnection& connection) = 0;
  // The connection holds an incomplete command. The host bounds the time without a further byte.
  virtual void on_incomplete(TcpConnection& connection) = 0;
  virtual size_t outbox_limit() const = 0;
  virtual StringPool& string_pool() = 0;
  virtual const std::shared_ptr<MemoryBudget>& memory_budget() const = 0;
  virtual PeerLog& peer_log() = 0;
};

class TcpConnection final : public Connection, public std::enable_shared_from_this<TcpConnection> {
 public:
  struct Io;  // the socket
  struct Peer {
    std::string address;
    bool is_in_process = false;  // `address` is then the local one, too
  };

  // Takes the descriptor of an accepted, non-blocking connection. Null if the loop cannot watch it;
  // the caller then still owns the descriptor.
  static std::shared_ptr<TcpConnection> adopt(ConnectionHost& host, boost::asio::io_context& loop,
                                              SessionId id, int listener, int fd, Peer peer);
  TcpConnection(ConnectionHost& host, SessionId id, int listener, std::unique_ptr<Io> io,
                Peer peer);
  ~TcpConnection() override;

  SessionId id() const override { return id_; }
  bool is_open() const override { return state_ == State::Open && !wants_close_ && !wants_reset_; }
  bool is_above_high_watermark() override;
  void send(std::string_view bytes) override;
  void send_shared(const SharedBytes& bytes) override;
  size_t unsent() const override { return out_.size(); }
  void close() override;
  void reset() override;
  std::string peer_address() const override { return peer_.address; }
  std::string local_address() const override;
  std::shared_ptr<const void> input_owner(size_t& size) const override;

  void start() { read(); }
  // The peer begins with TLS: from now on everything is encrypted, also what has been received.
  // Only from inside of make_session(), which then asks for more bytes.
  void encrypt(std::unique_ptr<TlsLink> tls) { tls_ = std::move(tls); }
  bool is_encrypted() const { return tls_ != nullptr; }
  // Called by the host after schedule_read().
  void resume_read();
  // Replies are appended here directly; mark() must follow.
  std::string& reply() { return out_.tail(); }
  void mark();
  // Sends, closes or resets as requested since the last call. Called by end_batch() only.
  void settle();
  // Closes the connection now and notifies the session.
  void abort(CloseKind kind);

  int listener() const { return listener_; }  // the listener that accepted it
  // The first command is complete, and the session is settled.
  bool has_completed_handshake() const {
    return has_completed_handshake_ && (!session_ || session_->is_settled());
  }
  bool is_silent() const { return !has_received_; }  // has sent no byte
  bool is_lingering() const { return state_ == State::Closing; }
  // A command has begun, and the server could read its rest.
  bool is_incomplete() const {
    return state_ == State::Open && !was_above_high_watermark_ && !in_.held().empty();
  }
  // True if the host need not watch the time of this connection any more. It then calls
  // on_incomplete() again for the next incomplete command.
  bool forget_if_idle() {
    if (!has_completed_handshake() || is_lingering() || is_incomplete()) return false;
    is_timed_ = false;
    return true;
  }
  // Of an incomplete command: when its last byte came.
  std::chrono::steady_clock::time_point last_input() const { return last_input_; }
  // Ends the connection of a peer whose command does not continue.
  void drop_stalled();
  // Before a large copy into reply(). False: the server's memory budget has no room, and the
  // connection ends.
  bool may_copy(size_t size);
  bool is_legacy = false;     // a store client of torch 2.0 or 2.1
  bool is_companion = false;  // its second connection, which stays silent

 private:
  enum class State : uint8_t { Open, Closing, Dead };

  void read();
  void read_encrypted();
  void on_encrypted();
  void take_encrypted(std::span<const uint8_t> bytes);
  void refuse_encrypted();
  void on_read(bool is_end, bool is_error, size_t size);
  void process();
  void flush();
  void wait_writable();
  void end_of_input();
  void resume();
  void finish();
  void hand_over_input();
  void note_incomplete();
  void drop_slow_consumer();
  void drop(const std::string& why);
  std::string described_input() const;
  void charge_unsent();
  void abort_with_reset();
  void notify_closed(CloseKind kind);
  void die();

  ConnectionHost& host_;
  SessionId id_;
  int listener_;
  std::unique_ptr<Io> io_;
  const Peer peer_;
  std::unique_ptr<TlsLink> tls_;  // null: plain
  std::unique_ptr<Session> session_;
  State state_ = State::Open;
  bool is_dirty_ = false;
  bool is_reading_ = false;  // a read is pending, so in_ must not move
  // A session paused because of is_above_high_watermark().
  bool was_above_high_watermark_ = false;
  bool wants_close_ = false;
  bool wants_reset_ = false;
  bool is_fin_sent_ = false;
  bool has_peer_ended_ = false;
  bool is_waiting_writable_ = false;
  bool has_completed_handshake_ = false;
  bool has_received_ = false;
  bool is_timed_ = false;  // on_incomplete() was called for the held input
  std::chrono::steady_clock::time_point last_input_;
  HandlerMemory read_memory_;
  InputBuffer in_;
  Outbox out_;
  MemoryBudget::Charge unsent_charge_;  // the copied bytes of a long out_
  size_t backlog_ = 0;                  // size of out_ after the last settle()
};

}  // namespace cpprun

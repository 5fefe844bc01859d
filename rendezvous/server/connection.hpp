// TcpConnection: the server's side of one TCP connection. Internal to rendezvous/server; sessions
// see Connection.
//
// Callbacks, no coroutine: at most one read and one wait for writing are pending. Liveness: Open ->
// Closing (everything queued goes out, then FIN, then what still comes is thrown away until the
// peer's FIN) -> Dead. The server keeps it in its table until Dead; pending operations keep it a
// little longer and then find it Dead. Thread: the server's loop.
#pragma once

#include <memory>
#include <string>

#include "rendezvous/server/buffers.hpp"
#include "rendezvous/server/handler_memory.hpp"
#include "rendezvous/server/session.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

class TcpConnection;

// What a connection needs from its server.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  // A connection spoke its first words: which session? Null: close it. `needs_more` asks to come
  // again.
  virtual std::unique_ptr<Session> make_session(TcpConnection& connection,
                                                std::span<const uint8_t> bytes,
                                                bool& needs_more) = 0;
  virtual void begin_batch() = 0;
  // Every connection that was given something to send, or to end, is settled here.
  virtual void end_batch() = 0;
  // Reading again right after an answer finds nothing, since the peer has yet to see it: it can
  // wait until the other connections that have something had their turn. Calls resume_read() then.
  virtual void schedule_read(TcpConnection& connection) = 0;
  // Must be settled at the end of this wake-up, or soon if there is none.
  virtual void on_dirty(TcpConnection& connection) = 0;
  // It has said its last word and now waits for the peer's: must not take for ever.
  virtual void on_lingering(TcpConnection& connection) = 0;
  virtual void on_dead(TcpConnection& connection) = 0;
  virtual size_t outbox_limit() const = 0;
  virtual StringPool& string_pool() = 0;
};

class TcpConnection final : public Connection, public std::enable_shared_from_this<TcpConnection> {
 public:
  struct Io;  // the socket

  // Takes the descriptor of an accepted, non-blocking connection; null (and the descriptor still
  // the caller's) if the loop cannot watch it.
  static std::shared_ptr<TcpConnection> adopt(ConnectionHost& host, boost::asio::io_context& loop,
                                              SessionId id, int listener, int fd, std::string peer);
  TcpConnection(ConnectionHost& host, SessionId id, int listener, std::unique_ptr<Io> io,
                std::string peer);
  ~TcpConnection() override;

  SessionId id() const override { return id_; }
  bool is_open() const override { return state_ == State::Open && !wants_close_ && !wants_reset_; }
  bool is_above_high_watermark() override;
  void send(std::string_view bytes) override;
  void send_shared(const SharedBytes& bytes) override;
  size_t unsent() const override { return out_.size(); }
  void close() override;
  void reset() override;
  std::string peer_address() const override { return peer_; }
  std::string local_address() const override;
  std::shared_ptr<const void> input_owner(size_t& size) const override;

  void start() { read(); }
  // What schedule_read() promised.
  void resume_read();
  // Where replies are appended without a detour; mark() must follow.
  std::string& reply() { return out_.tail(); }
  void mark();
  // Carries out what was asked for since the last time. From the server's end_batch() only.
  void settle();
  // Ends it now, telling the session.
  void abort(CloseKind kind);

  int listener() const { return listener_; }  // which listener accepted it
  // Finished its first command, and what belongs to that.
  bool has_completed_handshake() const {
    return has_completed_handshake_ && (!session_ || session_->is_settled());
  }
  bool is_silent() const { return !has_received_; }  // sent nothing at all so far
  bool is_lingering() const { return state_ == State::Closing; }
  bool is_legacy = false;  // a store client of torch 2.0 or 2.1

 private:
  enum class State : uint8_t { Open, Closing, Dead };

  void read();
  void on_read(bool is_end, bool is_error, size_t size);
  void process();
  void flush();
  void wait_writable();
  void end_of_input();
  void resume();
  void finish();
  void drop_slow_consumer();
  void abort_with_reset();
  void notify_closed(CloseKind kind);
  void die();

  ConnectionHost& host_;
  SessionId id_;
  int listener_;
  std::unique_ptr<Io> io_;
  std::string peer_;
  std::unique_ptr<Session> session_;
  State state_ = State::Open;
  bool is_dirty_ = false;
  bool is_reading_ = false;  // then in_ must stay where it is
  // A session stopped early because of is_above_high_watermark().
  bool was_above_high_watermark_ = false;
  bool wants_close_ = false;
  bool wants_reset_ = false;
  bool is_fin_sent_ = false;
  bool has_peer_ended_ = false;
  bool is_waiting_writable_ = false;
  bool has_completed_handshake_ = false;
  bool has_received_ = false;
  HandlerMemory read_memory_;
  InputBuffer in_;
  Outbox out_;
  size_t backlog_ = 0;  // of out_, when it was last settled
};

}  // namespace cpprun

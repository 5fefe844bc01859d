#include "launcher/ssh/remote_agent.hpp"

#include <algorithm>

#include "common/limits/ssh.hpp"
#include "launcher/ssh/plan/control_lines.hpp"
#include "launcher/ssh/plan/start_failure.hpp"

namespace cpprun::ssh {
namespace {

void keep_end(std::string& text, size_t most) {
  if (text.size() > most) text.erase(0, text.size() - most);
}

}  // namespace

RemoteAgent::RemoteAgent(std::string host, bool is_local)
    : host_(std::move(host)),
      is_local_(is_local),
      out_lines_(host_ + ": "),
      err_lines_(host_ + ": ") {}

void RemoteAgent::await_relay(std::string via, Instant now) {
  via_ = std::move(via);
  state_ = State::Starting;
  started_at_ = now;
}

void RemoteAgent::start(std::unique_ptr<Process> process, const std::string& header,
                        std::string via, Instant now) {
  process_ = std::move(process);
  via_ = std::move(via);
  state_ = State::Starting;
  started_at_ = now;
  process_->send(header);
}

void RemoteAgent::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  kill();
  if (!has_process()) state_ = State::Ended;
}

void RemoteAgent::begin() {
  if (state_ != State::Ready) return;
  state_ = State::Running;
  send(kBeginLine);
}

void RemoteAgent::send_signal(int number) {
  if (state_ == State::Running) send(signal_line(number));
}

void RemoteAgent::send(std::string_view text) {
  if (!has_process() || process_->unsent() > limits::kControlHeaderBytes) return;
  process_->send(text);
}

void RemoteAgent::close_input() {
  if (has_process()) process_->close_input();
}

void RemoteAgent::kill() {
  if (has_process()) process_->kill();
}

void RemoteAgent::on_out(std::string_view bytes, Instant now) {
  if (state_ != State::Starting) {
    text_.out += out_lines_.feed(bytes, now);
    return;
  }
  const std::optional<std::string> rest = hello_.feed(bytes);
  if (!rest) return;
  state_ = State::Ready;
  text_.out += out_lines_.feed(*rest, now);
}

void RemoteAgent::on_err(std::string_view bytes, Instant now) {
  if (state_ == State::Starting) {
    errors_ += bytes;
    keep_end(errors_, limits::kSshErrorBytes);
  }
  text_.err += err_lines_.feed(bytes, now);
}

void RemoteAgent::show_parts(Instant now, bool reads) {
  const auto show_part = [&](PrefixedLines& lines, std::string& text) {
    if (now < lines.part_deadline()) return;
    if (reads) {
      text += lines.show_part(now);
    } else {
      lines.postpone_part(now);
    }
  };
  show_part(out_lines_, text_.out);
  show_part(err_lines_, text_.err);
}

Instant RemoteAgent::part_deadline() const {
  return std::min(out_lines_.part_deadline(), err_lines_.part_deadline());
}

void RemoteAgent::on_refused(std::string_view why, Instant now) {
  if (failure_.empty())
    failure_ = "host " + host_ + (via_.empty() ? ": " : ", reached from host " + via_ + ": ") +
               std::string(why);
  on_end(ProcessEnd{}, now);
}

void RemoteAgent::on_end(const ProcessEnd& end, Instant) {
  exit_code_ = end.is_relay_lost ? kSshFailed : end.code;
  has_lost_relay_ = end.is_relay_lost;
  is_lost_ = end.was_killed || end.is_relay_lost || (!is_local_ && exit_code_ == kSshFailed);
  text_.out += out_lines_.finish();
  text_.err += err_lines_.finish();
  state_ = State::Ended;
  has_new_end_ = true;
}

}  // namespace cpprun::ssh

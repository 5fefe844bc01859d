#include "launcher/ssh/relay.hpp"

#include <utility>

#include "common/limits/ssh.hpp"

namespace cpprun::ssh {

using Kind = RelayFrame::Kind;

class Relay::RelayedProcess final : public Process {
 public:
  RelayedProcess(Relay& relay, uint32_t number, ProcessSink& sink)
      : relay_(&relay), number_(number), sink_(sink) {}
  ~RelayedProcess() override {
    if (relay_ == nullptr) return;
    RelayedProcess::kill();
    relay_->processes_.erase(number_);
  }

  void send(std::string_view bytes) override {
    while (relay_ != nullptr && !bytes.empty()) {
      const std::string_view part = bytes.substr(0, limits::kRelayInputBytes);
      relay_->send(Kind::Input, number_, part);
      bytes.remove_prefix(part.size());
    }
  }
  void close_input() override {
    if (relay_ != nullptr) relay_->send(Kind::CloseInput, number_);
  }
  void kill() override {
    if (relay_ != nullptr) relay_->send(Kind::Kill, number_);
  }
  size_t unsent() const override { return 0; }  // the relay counts

  ProcessSink& sink() { return sink_; }
  void detach() { relay_ = nullptr; }

 private:
  Relay* relay_;  // null: the process has ended
  const uint32_t number_;
  ProcessSink& sink_;
};

Relay::~Relay() {
  for (const auto& [number, process] : processes_) process->detach();
}

std::unique_ptr<Process> Relay::start(Kind kind, const std::vector<std::string>& words,
                                      ProcessSink& sink) {
  const uint32_t number = ++last_number_;
  auto made = std::make_unique<RelayedProcess>(*this, number, sink);
  processes_[number] = made.get();
  send(kind, number, start_payload(words));
  return made;
}

// A connection that takes nothing any more is given up.
void Relay::send(Kind kind, uint32_t process, std::string_view payload) {
  if (has_ended_) return;
  if (process_->unsent() > limits::kRelayUnsentBytes) return kill();
  process_->send(relay_frame(kind, process, payload));
}

void Relay::on_out(std::string_view bytes, Instant now) {
  std::optional<std::string> rest;
  if (!is_ready_) {
    rest = hello_.feed(bytes);
    if (!rest) return;
    is_ready_ = true;
    bytes = *rest;
  }
  frames_.feed(bytes);
  for (;;) {
    const Result<std::optional<RelayFrame>> frame = frames_.next();
    if (!frame) return kill();
    if (!*frame) return;
    on_frame(**frame, now);
  }
}

void Relay::on_frame(const RelayFrame& frame, Instant now) {
  const auto found = processes_.find(frame.process);
  if (found == processes_.end()) return;
  ProcessSink& sink = found->second->sink();
  switch (frame.kind) {
    case Kind::Output: return sink.on_out(frame.payload, now);
    case Kind::Errors: return sink.on_err(frame.payload, now);
    case Kind::End:
      forget(frame.process);
      return sink.on_end(end_of_payload(frame.payload).value_or(ProcessEnd{}), now);
    case Kind::Refused: forget(frame.process); return sink.on_refused(frame.payload, now);
    default: return;
  }
}

void Relay::forget(uint32_t process) {
  const auto found = processes_.find(process);
  found->second->detach();
  processes_.erase(found);
}

void Relay::on_refused(std::string_view why, Instant now) {
  agent_->on_refused(why, now);
  on_end(ProcessEnd{}, now);
}

void Relay::on_end(const ProcessEnd& end, Instant now) {
  has_ended_ = true;
  end_ = end;
  ProcessEnd lost;
  lost.is_relay_lost = true;
  while (!processes_.empty()) {
    ProcessSink& sink = processes_.begin()->second->sink();
    forget(processes_.begin()->first);
    sink.on_end(lost, now);
  }
}

}  // namespace cpprun::ssh

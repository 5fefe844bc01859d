#include "agent/daemon/events/span_exporter.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "common/http/http_post.hpp"
#include "common/limits/traces.hpp"
#include "common/log/log.hpp"
#include "common/text.hpp"
#include "common/thread/detached_thread.hpp"
#include "common/traces/otlp_json.hpp"

namespace cpprun {

struct SpanExporter::Shared {
  explicit Shared(TraceConfig given) : config(std::move(given)) {}

  const TraceConfig config;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> queue;
  size_t sending = 0;  // taken from the queue
  size_t all = 0;
  size_t dropped = 0;
  std::string why;  // of the newest failure
  bool is_ended = false;

  void run();
};

// On the thread.
void SpanExporter::Shared::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return is_ended || !queue.empty(); });
    if (queue.empty()) return;
    std::vector<std::string> spans;
    while (!queue.empty() && spans.size() < limits::kSpansPerRequest) {
      spans.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    sending = spans.size();
    lock.unlock();
    const std::string body = otlp_request(config.attributes, spans);
    const Status sent = http_post_with_retries(config.url, body, config.headers);
    lock.lock();
    if (!sent) {
      dropped += sending;
      why = sent.error().text;
    }
    sending = 0;
    changed.notify_all();
  }
}

SpanExporter::SpanExporter(TraceConfig config)
    : shared_(std::make_shared<Shared>(std::move(config))) {}

SpanExporter::~SpanExporter() {
  const std::lock_guard lock(shared_->mutex);
  shared_->is_ended = true;
  shared_->changed.notify_all();
}

void SpanExporter::add(std::string span) {
  if (!has_thread_) {
    has_thread_ = start_detached_thread([shared = shared_] { shared->run(); }).ok();
  }
  const std::lock_guard lock(shared_->mutex);
  ++shared_->all;
  if (!has_thread_ || shared_->queue.size() >= limits::kSpansQueued) {
    ++shared_->dropped;
    if (shared_->why.empty()) shared_->why = "too many wait";
    return;
  }
  shared_->queue.push_back(std::move(span));
  shared_->changed.notify_all();
}

void SpanExporter::finish() {
  std::unique_lock lock(shared_->mutex);
  const auto is_sent = [this] { return shared_->queue.empty() && shared_->sending == 0; };
  if (!shared_->changed.wait_for(lock, limits::kTraceEndWait, is_sent)) {
    shared_->why = "no answer in time";
  }
  const size_t lost = shared_->dropped + shared_->queue.size() + shared_->sending;
  shared_->queue.clear();
  if (lost == 0) return;
  log::warning("traces: " + std::to_string(lost) + " of " + text::count(shared_->all, "span") +
               " were not sent to " + to_string(shared_->config.url.endpoint) + ": " +
               shared_->why);
}

}  // namespace cpprun

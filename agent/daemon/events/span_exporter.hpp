// SpanExporter: sends spans to a collector by OTLP/HTTP, as JSON, on a thread of its own: a name
// server or a collector may not answer. The queue has a limit; what does not fit is dropped and
// counted. Thread: the loop's. Owner: the trace recorder.
#pragma once

#include <memory>
#include <string>

#include "agent/daemon/events/trace_config.hpp"

namespace cpprun {

class SpanExporter {
 public:
  // Sends nothing before the first add().
  explicit SpanExporter(TraceConfig config);
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;

  // Queues a span, an OTLP JSON object.
  void add(std::string span);
  // Waits until all spans are sent, at most limits::kTraceEndWait, and logs one warning if some
  // were not. For the end of a run, when no loop runs any more.
  void finish();

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this object
  bool has_thread_ = false;
};

}  // namespace cpprun

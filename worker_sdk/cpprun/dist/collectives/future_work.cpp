#include "cpprun/dist/collectives/future_work.hpp"

#include <utility>
#include <vector>

namespace cpprun::dist {

bool FutureWork::wait(std::chrono::milliseconds) {
  future_->waitAndThrow();
  return true;
}

NativeFuture ended_future(std::exception_ptr error) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
  if (error) {
    future->setError(std::move(error));
  } else {
    future->markCompleted(std::vector<at::Tensor>());
  }
  return future;
}

NativeFuture continued(const NativeFuture& before, std::function<void()> step,
                       Translate translate) {
  auto after = before->createInstance(before->elementType());
  // LibTorch's own then() lets exceptions pass that are no std::exception, which would end a thread
  // of gloo.
  before->addCallback([after, step = std::move(step),
                       translate = std::move(translate)](c10::ivalue::Future& ended) {
    std::exception_ptr error = ended.exception_ptr();
    try {
      if (!error && step) step();
    } catch (...) {
      error = std::current_exception();
    }
    if (error) {
      after->setError(translate ? translate(error) : error);
    } else {
      after->markCompleted(ended.value(), ended.storages());
    }
  });
  return after;
}

}  // namespace cpprun::dist

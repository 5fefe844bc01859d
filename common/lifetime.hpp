// Lifetime: makes callbacks that may come after their object's destruction harmless. The object has
// a Lifetime as a member and wraps such a callback with guard().
//
// Threads: any thread may call guard(). A wrapped callback is called on the thread that destroys
// the object.
#pragma once

#include <memory>
#include <utility>

namespace cpprun {

class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // Returns a callable that calls `call` until this object's destruction, and then does nothing.
  template <class Call>
  auto guard(Call call) const {
    return
        [alive = std::weak_ptr<int>(token_), call = std::move(call)](auto&&... arguments) mutable {
          if (!alive.expired()) call(std::forward<decltype(arguments)>(arguments)...);
        };
  }

 private:
  const std::shared_ptr<int> token_ = std::make_shared<int>();
};

}  // namespace cpprun

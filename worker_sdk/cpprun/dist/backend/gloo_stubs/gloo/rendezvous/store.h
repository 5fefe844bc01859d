// Replaces Gloo's header of this name: the base class of c10d's GlooStore.
//
// Gloo's own class has more virtual functions. That is harmless as long as the SDK neither creates,
// nor derives from, nor calls one: such objects are created and destroyed inside LibTorch.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gloo::rendezvous {

class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout);
};

}  // namespace gloo::rendezvous

// Stands in for Gloo's header of this name: the base of c10d's GlooStore.
//
// Gloo's own has more virtual functions. That does no harm as long as nobody here makes, derives
// from or calls one: such objects live and die within LibTorch.
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

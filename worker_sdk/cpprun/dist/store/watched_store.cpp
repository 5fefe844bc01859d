#include "cpprun/dist/store/watched_store.hpp"

#include <c10/util/Exception.h>

namespace cpprun::dist {

using std::chrono::milliseconds;

c10::intrusive_ptr<c10d::Store> WatchedStore::clone() {
  return c10::make_intrusive<WatchedStore>(base_->clone(), timeout_, watch_);
}

void WatchedStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  base_->set(key, value);
  // A rank that failed before this key was set did not know that this rank waits.
  watch_.check_failures();
}

std::vector<uint8_t> WatchedStore::compareSet(const std::string& key,
                                              const std::vector<uint8_t>& expected,
                                              const std::vector<uint8_t>& desired) {
  return base_->compareSet(key, expected, desired);
}

std::vector<uint8_t> WatchedStore::get(const std::string& key) {
  wait({key});
  watch_.check_failures();
  return base_->get(key);
}

int64_t WatchedStore::add(const std::string& key, int64_t value) { return base_->add(key, value); }
bool WatchedStore::deleteKey(const std::string& key) { return base_->deleteKey(key); }
bool WatchedStore::check(const std::vector<std::string>& keys) { return base_->check(keys); }
int64_t WatchedStore::getNumKeys() { return base_->getNumKeys(); }
void WatchedStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void WatchedStore::wait(const std::vector<std::string>& keys, const milliseconds& timeout) {
  if (timeout <= watch_.report_after) return base_->wait(keys, timeout);
  try {
    base_->wait(keys, watch_.report_after);
  } catch (const c10::DistStoreError&) {
    // The keys are still missing; a broken connection would throw another class.
    watch_.report();
    base_->wait(keys, timeout - watch_.report_after);
  }
}

void WatchedStore::append(const std::string& key, const std::vector<uint8_t>& value) {
  base_->append(key, value);
}

std::vector<std::vector<uint8_t>> WatchedStore::multiGet(const std::vector<std::string>& keys) {
  wait(keys);
  watch_.check_failures();
  return base_->multiGet(keys);
}

void WatchedStore::multiSet(const std::vector<std::string>& keys,
                            const std::vector<std::vector<uint8_t>>& values) {
  base_->multiSet(keys, values);
}

bool WatchedStore::hasExtendedApi() const { return base_->hasExtendedApi(); }

}  // namespace cpprun::dist

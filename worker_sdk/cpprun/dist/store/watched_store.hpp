// WatchedStore: the store that backends use for their rendezvous; one rank's error ends the waiting
// of all ranks. Private to dist.
//
// A failing rank sets the keys that other ranks wait for (rank_registration.hpp). Every rank that
// reads a value then checks for a reported failure, so no rank polls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace cpprun::dist {

class WatchedStore : public c10d::Store {
 public:
  struct Watch {
    std::chrono::milliseconds report_after;  // `report` runs once per wait that lasts longer
    std::function<void()> report;
    std::function<void()> check_failures;  // throws if another rank has failed
  };

  WatchedStore(c10::intrusive_ptr<c10d::Store> base, std::chrono::milliseconds timeout, Watch watch)
      : c10d::Store(timeout), base_(std::move(base)), watch_(std::move(watch)) {}

  c10::intrusive_ptr<c10d::Store> clone() override;
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys,
                const std::vector<std::vector<uint8_t>>& values) override;
  bool hasExtendedApi() const override;

 private:
  c10::intrusive_ptr<c10d::Store> base_;
  Watch watch_;
};

}  // namespace cpprun::dist

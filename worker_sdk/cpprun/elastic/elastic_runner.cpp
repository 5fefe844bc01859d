#include "cpprun/elastic/elastic_runner.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <string>
#include <string_view>

#include "common/text.hpp"
#include "cpprun/dist/errors.hpp"
#include "cpprun/dist/group/round.hpp"
#include "cpprun/elastic/elastic_model.hpp"
#include "cpprun/elastic/health_check.hpp"
#include "cpprun/snapshot/job_history.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/internal/exception_text.hpp"
#include "cpprun/worker/regroup_link.hpp"

namespace cpprun::detail {
namespace {

// A survivor may see that a peer is gone before the agent asks it to regroup. An agent learns of a
// lost node after a lease of some seconds. Then the exception was the worker's own after all.
constexpr std::chrono::seconds kRequestTakes{20};
constexpr size_t kLeavingTextMost = 200;

std::atomic<bool> is_running{false};

// In errors of LibTorch, Gloo, NCCL and this SDK after the loss of a peer.
constexpr std::array<std::string_view, 10> kOfPeers = {
    "gloo",        "nccl",      "connection", "socket",        "closed by",
    "broken pipe", "timed out", "timeout",    "process group", "store"};

bool names_peers(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kOfPeers.begin(), kOfPeers.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

// Whether the exception may follow from the end of another worker.
bool may_be_of_peers(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const dist::DistArgumentError&) {
    return false;
  } catch (const dist::DistUnsupportedError&) {
    return false;
  } catch (const std::logic_error&) {
    return false;
  } catch (const std::exception& thrown) {
    return names_peers(thrown.what());
  } catch (...) {
    return false;
  }
}

void report_leaving(const std::exception_ptr& error) {
  const std::string text = worker::describe_exception(error).message;
  std::fprintf(stderr, "cpprun: rank %d stays, and leaves its round by %s\n",
               worker::environment_or_default().rank,
               text::one_line(text, kLeavingTextMost).c_str());
}

}  // namespace

ElasticRunner::ElasticRunner(const ElasticOptions& options) : options_(options) {
  if (options.min_world < 1)
    throw std::invalid_argument("elastic: min_world is " + std::to_string(options.min_world) +
                                ", but must be at least 1");
  if (options.health_check_timeout.count() <= 0)
    throw std::invalid_argument("elastic: health_check_timeout must be more than 0");
  if (is_running.exchange(true))
    throw std::logic_error("elastic: another training function or loop runs in this process");
  snapshot::own_job_history();  // as of the first round
  link_ = worker::RegroupLink::open(dist::wake_round);
}

ElasticRunner::~ElasticRunner() { is_running.store(false); }

bool ElasticRunner::is_requested() const { return link_ && link_->is_requested(); }

void ElasticRunner::close() { link_.reset(); }

void ElasticRunner::run(const std::function<void(ElasticRound&)>& train) {
  for (;;) {
    try {
      const auto round = enter_round();
      return train(*round);
    } catch (const abi::__forced_unwind&) {
      throw;  // pthread_exit unwinds with this exception
    } catch (...) {
      if (!regroups_after(std::current_exception())) throw;
    }
    // Here the exception, and with it what it holds of the function, is gone.
    next_round();
  }
}

std::unique_ptr<ElasticRound> ElasticRunner::enter_round() {
  if (link_) {
    dist::begin_round(worker::environment_or_default().round);
    // The request for the next regroup may have come before.
    if (is_requested()) dist::wake_round();
  }
  std::unique_ptr<ElasticRound> round(new ElasticRound(*this, is_first_));
  if (round->world_size() < options_.min_world) {
    throw std::runtime_error(
        "this round has " + std::to_string(round->world_size()) +
        " workers, fewer than min_world = " + std::to_string(options_.min_world));
  }
  return round;
}

// Waits for the agent's request, if the exception looks like one of a lost peer.
bool ElasticRunner::regroups_after(const std::exception_ptr& error) {
  if (!link_) return false;
  const auto limit = may_be_of_peers(error) ? kRequestTakes : std::chrono::seconds(0);
  if (!link_->wait_for_request(limit)) return false;
  report_leaving(error);
  return true;
}

void ElasticRunner::next_round() {
  dist::leave_round();
  check_health(options_);
  const Status entered = link_->enter_next_round(completed_);
  if (!entered) throw std::runtime_error("elastic: no other round: " + entered.error().text);
  is_first_ = false;
}

void ElasticRunner::commit(int64_t step) {
  completed_ = step;
  worker::heartbeat(step);
  if (has_new_models_) note_bucket_orders();
}

void ElasticRunner::note_bucket_orders() {
  std::vector<std::string> orders;
  for (ElasticModel* each : models_) orders.push_back(each->buckets());
  bucket_orders_ = std::move(orders);
  has_new_models_ = false;
}

void ElasticRunner::remove_model(const ElasticModel& model) { std::erase(models_, &model); }

void ElasticRunner::bind_model(ElasticModel& model) {
  model.bind();
  const auto place =
      static_cast<size_t>(std::find(models_.begin(), models_.end(), &model) - models_.begin());
  if (place < bucket_orders_.size()) model.set_buckets(bucket_orders_[place]);
  has_new_models_ = true;
}

void ElasticRunner::bind_models() {
  for (ElasticModel* each : models_) bind_model(*each);
}

void ElasticRunner::unbind_models() {
  for (ElasticModel* each : models_) each->unbind();
}

void run_elastic(const ElasticOptions& options, const std::function<void(ElasticRound&)>& train) {
  ElasticRunner(options).run(train);
}

}  // namespace cpprun::detail

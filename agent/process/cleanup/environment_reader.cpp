#include "agent/process/cleanup/environment_reader.hpp"

#include <mutex>
#include <utility>

#include "common/limits/agent.hpp"
#include "common/thread/detached_thread.hpp"

namespace cpprun {

struct EnvironmentReader::State {
  std::string token;
  std::function<void()> on_news;
  std::mutex mutex;
  std::vector<Answer> answers;
  size_t threads = 0;

  void read(const std::vector<int>& pids) {
    for (const int pid : pids) {
      Answer answer{pid, parse_origin(read_small_file(proc_path(pid, "environ")), token)};
      const std::lock_guard lock(mutex);
      answers.push_back(answer);
    }
    {
      const std::lock_guard lock(mutex);
      --threads;
    }
    on_news();
  }
};

EnvironmentReader::EnvironmentReader(std::string token, std::function<void()> on_news)
    : state_(std::make_shared<State>()) {
  state_->token = std::move(token);
  state_->on_news = std::move(on_news);
}

void EnvironmentReader::ask(std::vector<int> pids) {
  const std::lock_guard lock(state_->mutex);
  if (pids.empty() || state_->threads >= limits::kEnvironmentReaders) return;
  const Status started =
      start_detached_thread([state = state_, pids = std::move(pids)] { state->read(pids); });
  if (started) ++state_->threads;
}

std::vector<EnvironmentReader::Answer> EnvironmentReader::take() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->answers, {});
}

}  // namespace cpprun

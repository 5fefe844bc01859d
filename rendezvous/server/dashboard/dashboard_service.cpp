#include "rendezvous/server/dashboard/dashboard_service.hpp"

#include <optional>
#include <utility>

#include "common/limits/dashboard.hpp"
#include "common/machine/clock.hpp"
#include "common/text.hpp"
#include "rendezvous/observe/dashboard_json.hpp"

namespace cpprun {
namespace {

// The name of a private topic: rank, blank, run id.
std::string topic_of(const JobRank& wanted) {
  return std::to_string(wanted.rank) + " " + wanted.run_id;
}
std::optional<JobRank> rank_of(const std::string& topic) {
  const size_t blank = topic.find(' ');
  const auto rank = text::parse_int(topic.substr(0, blank));
  if (blank == std::string::npos || !rank) return std::nullopt;
  return JobRank{topic.substr(blank + 1), *rank};
}

HttpResponse forbidden(const Error& error) {
  return {403, "text/plain; charset=utf-8", error.text + "\n"};
}

}  // namespace

bool DashboardService::Subscription::must_be_renewed(Instant now) const {
  return now >= until - (limits::kWatchDuration - limits::kWatchRenewInterval);
}

void DashboardService::fill(ServerHooks& hooks) {
  hooks.topics = [this](const std::set<std::string>& private_ones) { return topics(private_ones); };
  hooks.unwatched = [this] { unwatched(); };
  hooks.steps = [this] { return dashboard_steps(history_); };
  hooks.log_page = [this](std::string_view path, std::string_view query, const std::string& peer) {
    return log_page(path, query, peer);
  };
}

std::vector<Topic> DashboardService::topics(const std::set<std::string>& private_ones) {
  const Instant now = boot_now();
  if (watched_.must_be_renewed(now)) watch(limits::kWatchDuration);
  history_.update(core_);
  std::vector<Topic> all = {{"state", dashboard_state(core_, job_history_)},
                            {"progress", dashboard_progress(core_)},
                            {"workers", dashboard_workers(core_)}};
  std::erase_if(tails_, [&](const auto& e) { return !private_ones.contains(topic_of(e.first)); });
  for (const std::string& topic : private_ones) {
    const std::optional<JobRank> wanted = rank_of(topic);
    if (!wanted) continue;
    read_lines(*wanted);
    all.push_back({"log", dashboard_lines(core_, *wanted), topic});
  }
  return all;
}

void DashboardService::unwatched() {
  tails_.clear();
  watch(Duration{});
}

void DashboardService::watch(Duration lasts) {
  watched_.until = boot_now() + lasts;
  run_core_([&](Effects& e) { core_.watch(lasts, e); });
}

void DashboardService::read_lines(const JobRank& wanted) {
  const Instant now = boot_now();
  Subscription& asked = tails_[wanted];
  if (!asked.must_be_renewed(now)) return;
  asked.until = now + limits::kWatchDuration;
  run_core_([&](Effects& e) { core_.tail(wanted, limits::kWatchDuration, e); });
}

HttpResponse DashboardService::log_page(std::string_view path, std::string_view query,
                                        const std::string& peer) {
  const Instant now = boot_now();
  if (path == "/log/nonce") {
    const Result<std::string> nonce = authenticator_.on_nonce(now, peer);
    if (!nonce) return forbidden(nonce.error());
    return {200, "text/plain; charset=utf-8", *nonce};
  }
  const Result<JobRank> wanted = authenticator_.on_query(now, peer, query);
  if (!wanted) {
    if (wanted.error().kind == ErrorKind::Refused) {
      peer_log_.warning("refused log lines to " + peer + ": " + wanted.error().text);
    }
    return forbidden(wanted.error());
  }
  HttpResponse answer{200, "text/event-stream", ""};
  answer.is_stream = true;
  answer.topic = topic_of(*wanted);
  return answer;
}

}  // namespace cpprun

#include "rendezvous/server/dashboard/onlookers.hpp"

#include <optional>
#include <utility>

#include "common/limits/dashboard.hpp"
#include "common/log/log.hpp"
#include "common/text.hpp"
#include "rendezvous/observe/feed.hpp"
#include "rendezvous/server/clock.hpp"

namespace cpprun {
namespace {

// A private topic is named after what it is about: a rank, a blank, a run id.
std::string topic_of(const RankOfJob& wanted) {
  return std::to_string(wanted.rank) + " " + wanted.run_id;
}
std::optional<RankOfJob> rank_of(const std::string& topic) {
  const size_t blank = topic.find(' ');
  const auto rank = text::parse_int(topic.substr(0, blank));
  if (blank == std::string::npos || !rank) return std::nullopt;
  return RankOfJob{topic.substr(blank + 1), *rank};
}

HttpAnswer forbidden(const Error& error) {
  return {403, "text/plain; charset=utf-8", error.text + "\n"};
}

}  // namespace

bool Onlookers::Asked::must_be_renewed(Instant now) const {
  return now >= until - (limits::kWatchLasts - limits::kWatchRenewed);
}

void Onlookers::fill(ServerHooks& hooks) {
  hooks.topics = [this](const std::set<std::string>& private_ones) { return topics(private_ones); };
  hooks.unwatched = [this] { unwatched(); };
  hooks.steps = [this] { return dashboard_steps(history_); };
  hooks.log_page = [this](std::string_view path, std::string_view query, const std::string& peer) {
    return log_page(path, query, peer);
  };
}

std::vector<Topic> Onlookers::topics(const std::set<std::string>& private_ones) {
  const Instant now = server_time();
  if (watched_.must_be_renewed(now)) watch(limits::kWatchLasts);
  history_.look(now, core_);
  std::vector<Topic> all = {{"state", dashboard_state(core_, chronicle_)},
                            {"progress", dashboard_progress(core_)}};
  std::erase_if(tails_, [&](const auto& e) { return !private_ones.contains(topic_of(e.first)); });
  for (const std::string& topic : private_ones) {
    const std::optional<RankOfJob> wanted = rank_of(topic);
    if (!wanted) continue;
    read_lines(*wanted);
    all.push_back({"log", dashboard_lines(core_, *wanted), topic});
  }
  return all;
}

void Onlookers::unwatched() {
  tails_.clear();
  watch(Duration{});
}

void Onlookers::watch(Duration lasts) {
  watched_.until = server_time() + lasts;
  tell_core_([&](Effects& e) { core_.watch(lasts, e); });
}

void Onlookers::read_lines(const RankOfJob& wanted) {
  const Instant now = server_time();
  Asked& asked = tails_[wanted];
  if (!asked.must_be_renewed(now)) return;
  asked.until = now + limits::kWatchLasts;
  tell_core_([&](Effects& e) { core_.tail(wanted, limits::kWatchLasts, e); });
}

HttpAnswer Onlookers::log_page(std::string_view path, std::string_view query,
                               const std::string& peer) {
  const Instant now = server_time();
  if (path == "/log/nonce") {
    const Result<std::string> nonce = gate_.on_nonce(now, peer);
    if (!nonce) return forbidden(nonce.error());
    return {200, "text/plain; charset=utf-8", *nonce};
  }
  const Result<RankOfJob> wanted = gate_.on_query(now, peer, query);
  if (!wanted) {
    if (wanted.error().kind == ErrorKind::Refused) {
      log::warning("refused log lines to " + peer + ": " + wanted.error().text);
    }
    return forbidden(wanted.error());
  }
  HttpAnswer answer{200, "text/event-stream", ""};
  answer.goes_on = true;
  answer.topic = topic_of(*wanted);
  return answer;
}

}  // namespace cpprun

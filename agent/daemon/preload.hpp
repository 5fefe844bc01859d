// The daemon's part of --preload: what the preload process needs to know of the job's workers, and
// what became of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "agent/core/config.hpp"
#include "agent/process/preload/preloader.hpp"
#include "agent/process/process_host.hpp"
#include "common/worker_starts.hpp"

namespace cpprun {

// Null without --preload. `token`: of this agent's processes.
std::unique_ptr<Preloader> make_preloader(boost::asio::io_context& loop, const AgentConfig& config,
                                          const std::string& token);

// `preloader` may be null.
WorkerFork worker_fork(const AgentConfig& config, Preloader* preloader, size_t workers);
WorkerStarts worker_starts(const ProcessHost& host, const Preloader* preloader);

}  // namespace cpprun

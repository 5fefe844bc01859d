#include "cpprun/worker/c_api.h"

#include <stdio.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/environment.hpp"
#include "cpprun/worker/error_file.hpp"
#include "cpprun/worker/faults.hpp"
#include "cpprun/worker/internal/malloc_tuning.hpp"
#include "cpprun/worker/main.hpp"
#include "cpprun/worker/snapshot_notice.hpp"
#include "cpprun/worker/store_client.hpp"

struct cpprun_store {
  cpprun::worker::StoreClient client;
};

namespace {

namespace worker = cpprun::worker;
using cpprun::Error;
using cpprun::ErrorKind;

constexpr int kExitAfterError = 1;

thread_local std::string last_error;

cpprun_status failed(const Error& error) {
  last_error = error.text;
  switch (error.kind) {
    case ErrorKind::Usage:
    case ErrorKind::BadValue: return CPPRUN_BAD_VALUE;
    case ErrorKind::System: return CPPRUN_SYSTEM;
    case ErrorKind::Network: return CPPRUN_NETWORK;
    case ErrorKind::Protocol: return CPPRUN_PROTOCOL;
    case ErrorKind::Timeout: return CPPRUN_TIMEOUT;
    case ErrorKind::Refused: return CPPRUN_REFUSED;
  }
  return CPPRUN_SYSTEM;
}

cpprun_status result(const cpprun::Status& status) {
  return status ? CPPRUN_OK : failed(status.error());
}

const worker::Environment& own() { return worker::environment_or_default(); }

std::optional<int64_t> unless_negative(int64_t number) {
  return number < 0 ? std::nullopt : std::optional(number);
}

[[noreturn]] void report_and_exit(const std::string& text) {
  worker::report_error(text);
  ::fprintf(stderr, "cpprun: rank %d: %s\n", own().rank, text.c_str());
  std::exit(kExitAfterError);
}

cpprun::Result<std::string> address_or_own(const char* address) {
  if (address != nullptr) return std::string(address);
  if (!own().store.empty()) return own().store;
  return Error{ErrorKind::BadValue,
               "no address of a store was given, and CPPRUN_STORE is not set; start the program "
               "with cpprun, or give host:port"};
}

}  // namespace

extern "C" {

const char* cpprun_last_error() { return last_error.c_str(); }

void cpprun_start(unsigned options) {
  try {
    if ((options & CPPRUN_KEEPS_MALLOC) == 0) worker::tune_malloc(environ);
    cpprun::detail::start({.handles_sigterm = (options & CPPRUN_HANDLES_SIGTERM) != 0});
  } catch (const std::exception& error) {
    report_and_exit(error.what());
  }
}

const char* cpprun_environment_error() {
  const auto& read = worker::environment();
  return read ? nullptr : read.error().text.c_str();
}
int cpprun_is_launched() { return own().is_launched ? 1 : 0; }
int cpprun_rank() { return own().rank; }
int cpprun_local_rank() { return own().local_rank; }
int cpprun_world_size() { return own().world_size; }
int cpprun_local_world_size() { return own().local_world_size; }
int cpprun_group_rank() { return own().group_rank; }
int cpprun_group_world_size() { return own().group_world_size; }
const char* cpprun_master_addr() { return own().master_addr.c_str(); }
int cpprun_master_port() { return own().master_port; }
int cpprun_restart_count() { return own().restart_count; }
int cpprun_max_restarts() { return own().max_restarts; }
int64_t cpprun_round() { return own().round; }
const char* cpprun_run_id() { return own().run_id.c_str(); }
const char* cpprun_store_address() { return own().store.c_str(); }
const char* cpprun_resume_from() { return own().resume_from.c_str(); }

void cpprun_heartbeat(int64_t step, cpprun_phase phase) {
  worker::heartbeat(step, static_cast<worker::Phase>(phase));
}
void cpprun_compute_done() { worker::compute_done(); }
void cpprun_report_ready() { worker::report_ready(); }
int cpprun_should_stop() { return worker::should_stop() ? 1 : 0; }
int cpprun_has_agent() { return worker::has_agent() ? 1 : 0; }

void cpprun_enable_graceful_stop() { worker::enable_graceful_stop(); }
int cpprun_request_commit(int64_t step) {
  try {
    const worker::CommitPermission permission = worker::request_commit(step);
    if (!permission) last_error = permission.why;
    return permission ? 1 : 0;
  } catch (const std::exception& error) {  // of a fault
    report_and_exit(error.what());
  }
}
void cpprun_report_snapshot(int64_t step, const char* path) { worker::report_snapshot(step, path); }

cpprun_status cpprun_store_open(const char* address, int64_t timeout_ms, cpprun_store** store) {
  const cpprun::Result<std::string> target = address_or_own(address);
  if (!target) return failed(target.error());
  const std::chrono::milliseconds timeout(timeout_ms);
  worker::StoreClientOptions options;
  options.timeout = timeout;
  options.connect_timeout = timeout;
  cpprun::Result<worker::StoreClient> client = worker::StoreClient::connect(*target, options);
  if (!client) return failed(client.error());
  *store = new cpprun_store{std::move(*client)};
  return CPPRUN_OK;
}

cpprun_status cpprun_store_set(cpprun_store* store, const char* key, const void* value,
                               size_t size) {
  return result(store->client.set(key, {static_cast<const char*>(value), size}));
}

cpprun_status cpprun_store_get(cpprun_store* store, const char* key, char** value, size_t* size) {
  const cpprun::Result<std::string> got = store->client.get(key);
  if (!got) return failed(got.error());
  auto* copy = static_cast<char*>(std::malloc(got->size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, got->c_str(), got->size() + 1);
  *value = copy;
  *size = got->size();
  return CPPRUN_OK;
}

cpprun_status cpprun_store_add(cpprun_store* store, const char* key, int64_t amount, int64_t* sum) {
  const cpprun::Result<int64_t> got = store->client.add(key, amount);
  if (!got) return failed(got.error());
  *sum = *got;
  return CPPRUN_OK;
}

cpprun_status cpprun_store_wait(cpprun_store* store, const char* const* keys, size_t count) {
  return result(store->client.wait(std::vector<std::string>(keys, keys + count)));
}

void cpprun_store_close(cpprun_store* store) { delete store; }

int cpprun_report_error(const char* text) {
  return worker::report_error(text) == worker::Reported::Written ? 1 : 0;
}

void cpprun_fault_point(int64_t epoch, int64_t step) {
  try {
    worker::fault_point(unless_negative(epoch), unless_negative(step));
  } catch (const std::exception& error) {
    report_and_exit(error.what());
  }
}

}  // extern "C"

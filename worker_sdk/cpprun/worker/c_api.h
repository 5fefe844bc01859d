/** @file
 * cpprun::worker as C functions: environment, agent connection, store, reports, faults.
 *
 * C11. Link cpprun::worker and the C++ runtime. No exception reaches the caller; the process
 * aborts if memory runs out. Threads: any, unless a function states otherwise. Texts are UTF-8 and
 * end with a zero byte; the library owns the texts that it returns. */
#ifndef CPPRUN_WORKER_C_API_H
#define CPPRUN_WORKER_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Result of functions that can fail. cpprun_last_error has the text. */
enum cpprun_status {
  CPPRUN_OK = 0,
  CPPRUN_BAD_VALUE,
  CPPRUN_SYSTEM,   /**< the operating system refused */
  CPPRUN_NETWORK,  /**< the peer broke the connection or cannot be reached */
  CPPRUN_PROTOCOL, /**< the peer sent something invalid */
  CPPRUN_TIMEOUT,
  CPPRUN_REFUSED
};

/** Text of this thread's last failed call, with the value and the remedy. "" before the first
 * failure. Valid until the next failure in this thread. */
const char* cpprun_last_error(void);

/* --- start: what cpprun::main does before it calls the program's function */

/** Options of cpprun_start. */
enum cpprun_start_option {
  CPPRUN_HANDLES_SIGTERM = 1, /**< SIGTERM only sets cpprun_should_stop */
  CPPRUN_KEEPS_MALLOC = 2     /**< does not change malloc's settings */
};

/** Reports fatal signals and std::terminate in TORCHELASTIC_ERROR_FILE from now on, tunes malloc,
 * and carries out a fault of CPPRUN_FAULTS that matches the start. Call it once, first in main.
 * `options` is the sum of values of cpprun_start_option. */
void cpprun_start(unsigned options);

/* --- environment: parsed at the first call of any of these functions */

/** NULL, or the error in the environment; the functions below then describe a world of one. */
const char* cpprun_environment_error(void);
int cpprun_is_launched(void);           /**< 1: RANK and WORLD_SIZE are set */
int cpprun_rank(void);                  /**< RANK; 0 if unset */
int cpprun_local_rank(void);            /**< LOCAL_RANK: rank on this node; 0 if unset */
int cpprun_world_size(void);            /**< WORLD_SIZE; 1 if unset */
int cpprun_local_world_size(void);      /**< LOCAL_WORLD_SIZE; 1 if unset */
int cpprun_group_rank(void);            /**< GROUP_RANK: number of this node; 0 if unset */
int cpprun_group_world_size(void);      /**< GROUP_WORLD_SIZE: number of nodes; 1 if unset */
const char* cpprun_master_addr(void);   /**< MASTER_ADDR; "" if unset */
int cpprun_master_port(void);           /**< MASTER_PORT; 0 if unset */
int cpprun_restart_count(void);         /**< TORCHELASTIC_RESTART_COUNT; 0 if unset */
int cpprun_max_restarts(void);          /**< TORCHELASTIC_MAX_RESTARTS; 0 if unset */
int64_t cpprun_round(void);             /**< CPPRUN_ROUND; 0 under torchrun */
const char* cpprun_run_id(void);        /**< TORCHELASTIC_RUN_ID; "" if unset */
const char* cpprun_store_address(void); /**< cpprun's store of this round; "" under torchrun */
const char* cpprun_resume_from(void); /**< CPPRUN_RESUME_FROM, the snapshot to load; "" if unset */

/* --- agent: these functions do nothing without an agent; see cpprun/worker/agent_link.hpp */

/** What the worker is doing, as cpprun::worker::Phase. */
enum cpprun_phase {
  CPPRUN_STARTING = 0,
  CPPRUN_READY,
  CPPRUN_TRAINING,
  CPPRUN_EVALUATING,
  CPPRUN_SAVING,
  CPPRUN_ENDING
};

/** Reports that the worker has finished step `step` in `phase`. Makes no system call. */
void cpprun_heartbeat(int64_t step, enum cpprun_phase phase);
void cpprun_compute_done(void); /**< call it before the step's first collective */
void cpprun_report_ready(void); /**< setup is over, training begins */
int cpprun_should_stop(void);   /**< 1: save, then end */
int cpprun_has_agent(void);     /**< 1: an agent of cpprun answers */

/* --- snapshots: cpprun/worker/snapshot_notice.hpp describes these functions */

/** Exit code after a stop request, once the snapshot is complete. */
#define CPPRUN_STOPPED_RESUMABLE 75

/** States that this program saves and then ends when cpprun_should_stop is 1. */
void cpprun_enable_graceful_stop(void);
/** 1: rename the snapshot of this step to its final name. 0: do not; cpprun_last_error has the
 * reason. Carries out the faults of CPPRUN_FAULTS with phase=saving, as cpprun_fault_point does. */
int cpprun_request_commit(int64_t step);
/** Reports that the snapshot of `step` is committed at `path`. */
void cpprun_report_snapshot(int64_t step, const char* path);

/* --- store: a client of cpprun's store and of torch's TCPStore. One thread at a time per store.
 * A timeout or a broken connection closes the store; every later call fails with an error that
 * names the cause. */

/** A client of one store. */
typedef struct cpprun_store cpprun_store;

/** `address`: "host:port", IPv6 in brackets; NULL: cpprun_store_address. `timeout_ms` applies to
 * connecting and to each later call. Sets `*store` on CPPRUN_OK only; the caller closes it. */
enum cpprun_status cpprun_store_open(const char* address, int64_t timeout_ms, cpprun_store** store);
/** Sets `key` to the `size` bytes at `value`. Has no reply: the next call reports its errors. */
enum cpprun_status cpprun_store_set(cpprun_store* store, const char* key, const void* value,
                                    size_t size);
/** Waits for the key. The caller releases `*value` with free(); a zero byte follows the value. */
enum cpprun_status cpprun_store_get(cpprun_store* store, const char* key, char** value,
                                    size_t* size);
/** Adds `amount` to the number at `key` (missing: 0) and sets `*sum`, if the call succeeds. */
enum cpprun_status cpprun_store_add(cpprun_store* store, const char* key, int64_t amount,
                                    int64_t* sum);
/** Waits until all keys exist. */
enum cpprun_status cpprun_store_wait(cpprun_store* store, const char* const* keys, size_t count);
void cpprun_store_close(cpprun_store* store); /**< NULL is allowed */

/* --- reports and faults */

/** Writes the error file unless this process has reported already. 1: written. Does not end the
 * process. */
int cpprun_report_error(const char* text);

/** Marks a place in the training loop and carries out the faults of CPPRUN_FAULTS that match. -1:
 * no epoch, no step. A fault of kind `throw` and a malformed CPPRUN_FAULTS are reported and end
 * the process with code 1. */
void cpprun_fault_point(int64_t epoch, int64_t step);

#ifdef __cplusplus
}
#endif

#endif

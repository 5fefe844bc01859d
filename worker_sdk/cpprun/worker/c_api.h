/* cpprun::worker as C functions: environment, line to the agent, store, reports, faults.
 *
 * C11. Link cpprun::worker (and the C++ runtime). Nothing throws into the caller; running out of
 * memory ends the process. Any thread, except where it says otherwise. Texts are UTF-8 and end with
 * a zero; those that are returned belong to the library. */
#ifndef CPPRUN_WORKER_C_API_H
#define CPPRUN_WORKER_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions that may fail return. cpprun_last_error has the text. */
enum cpprun_status {
  CPPRUN_OK = 0,
  CPPRUN_BAD_VALUE,
  CPPRUN_SYSTEM,   /* the operating system refused */
  CPPRUN_NETWORK,  /* the peer broke the connection or can't be reached */
  CPPRUN_PROTOCOL, /* the peer sent what it must not */
  CPPRUN_TIMEOUT,
  CPPRUN_REFUSED
};

/* Text of this thread's last failed call: names the value and the cure. "" before the first. Good
 * until the next failure in this thread. */
const char* cpprun_last_error(void);

/* --- start: what cpprun::main does before it calls the program's function */

enum cpprun_start_option {
  CPPRUN_HANDLES_SIGTERM = 1, /* SIGTERM only sets cpprun_should_stop */
  CPPRUN_KEEPS_MALLOC = 2     /* leaves malloc's settings alone */
};

/* Reports fatal signals (and C++'s std::terminate) in TORCHELASTIC_ERROR_FILE from here on, tunes
 * malloc, carries out a fault of CPPRUN_FAULTS that fits the start. First in main, once, with
 * values of cpprun_start_option added up. */
void cpprun_start(unsigned options);

/* --- environment: read at the first call of any of these */

/* NULL, or what is wrong with it; the numbers below are then those of a world of one. */
const char* cpprun_environment_error(void);
int cpprun_is_launched(void); /* RANK and WORLD_SIZE are set */
int cpprun_rank(void);
int cpprun_local_rank(void);
int cpprun_world_size(void);
int cpprun_local_world_size(void);
int cpprun_group_rank(void);
int cpprun_group_world_size(void);
const char* cpprun_master_addr(void);
int cpprun_master_port(void);
int cpprun_restart_count(void);
int cpprun_max_restarts(void);
int64_t cpprun_round(void);
const char* cpprun_run_id(void);
const char* cpprun_store_address(void); /* of cpprun's store for this round; "" under torchrun */
const char* cpprun_resume_from(void);

/* --- line to the agent: does nothing without one */

enum cpprun_phase {
  CPPRUN_STARTING = 0,
  CPPRUN_READY,
  CPPRUN_TRAINING,
  CPPRUN_EVALUATING,
  CPPRUN_SAVING,
  CPPRUN_ENDING
};

void cpprun_heartbeat(int64_t step, enum cpprun_phase phase); /* no system call */
void cpprun_report_ready(void);
int cpprun_should_stop(void); /* 1: save, then end */
int cpprun_has_agent(void);

/* --- snapshots: what each call means stands in cpprun/worker/snapshot_notice.hpp */

/* Exit code: stopped on request, and the snapshot is complete. */
#define CPPRUN_STOPPED_RESUMABLE 75

void cpprun_enable_graceful_stop(void);
/* 1: give the snapshot of this step its final name. 0: don't; cpprun_last_error says why. */
int cpprun_request_commit(int64_t step);
void cpprun_report_snapshot(int64_t step, const char* path);

/* --- store: a client of cpprun's and of torch's TCPStore. One thread at a time per store. After a
 * timeout or a broken connection it is closed, and every call says so. */

typedef struct cpprun_store cpprun_store;

/* `address`: "host:port", IPv6 in brackets; NULL: cpprun_store_address. `timeout_ms`: of each call,
 * and of connecting. `*store` is set on CPPRUN_OK only, and is then the caller's to close. */
enum cpprun_status cpprun_store_open(const char* address, int64_t timeout_ms, cpprun_store** store);
enum cpprun_status cpprun_store_set(cpprun_store* store, const char* key, const void* value,
                                    size_t size);
/* Waits for the key. `*value` is the caller's, to be freed with free(); a zero follows its last
 * byte. */
enum cpprun_status cpprun_store_get(cpprun_store* store, const char* key, char** value,
                                    size_t* size);
enum cpprun_status cpprun_store_add(cpprun_store* store, const char* key, int64_t amount,
                                    int64_t* sum);
/* Waits until all keys are there. */
enum cpprun_status cpprun_store_wait(cpprun_store* store, const char* const* keys, size_t count);
void cpprun_store_close(cpprun_store* store); /* NULL is fine */

/* --- reports and faults */

/* Writes the error file, unless there is a report already. 1: it was written. Does not end the
 * process. */
int cpprun_report_error(const char* text);

/* The training loop is here; does what CPPRUN_FAULTS asks for. -1: not in any. A fault that throws
 * in C++, and a CPPRUN_FAULTS that is wrong, are reported and end the process with code 1. */
void cpprun_fault_point(int64_t epoch, int64_t step);

#ifdef __cplusplus
}
#endif

#endif

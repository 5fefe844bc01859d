/* A worker in plain C: c_worker HOW (`work`, `errors`, `snapshots`, `report`, `faults` or
 * `crash`). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpprun/worker.h"

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, cpprun_last_error());
  return 3;
}

/* Both ranks write their identity into the store, and read that of the other. */
static int work(void) {
  cpprun_store* store = NULL;
  if (cpprun_store_open(NULL, 20000, &store) != CPPRUN_OK) return fail("open");
  char key[32];
  snprintf(key, sizeof key, "word of %d", cpprun_rank());
  if (cpprun_store_set(store, key, "a\0b", 3) != CPPRUN_OK) return fail("set");
  const char* const words[] = {"word of 0", "word of 1"};
  if (cpprun_store_wait(store, words, 2) != CPPRUN_OK) return fail("wait");
  int64_t sum = 0;
  if (cpprun_store_add(store, "count", 5, &sum) != CPPRUN_OK) return fail("add");
  char* value = NULL;
  size_t size = 0;
  if (cpprun_store_get(store, words[1 - cpprun_rank()], &value, &size) != CPPRUN_OK) {
    return fail("get");
  }
  const int is_good = size == 3 && memcmp(value, "a\0b", 4) == 0 && sum >= 5;
  free(value);
  cpprun_heartbeat(1, CPPRUN_TRAINING);
  cpprun_compute_done();
  cpprun_report_ready();
  printf("rank %d of %d, local %d of %d, attempt %d: %s, stop %d\n", cpprun_rank(),
         cpprun_world_size(), cpprun_local_rank(), cpprun_local_world_size(),
         cpprun_restart_count(), is_good ? "good" : "bad", cpprun_should_stop());
  cpprun_store_close(store);
  return 0;
}

static int errors(void) {
  cpprun_store* store = NULL;
  const int status = cpprun_store_open("127.0.0.1:1", 300, &store);
  printf("open gives %d: %s\n", status, cpprun_last_error());
  printf("%s\n", cpprun_environment_error() == NULL ? "fine" : cpprun_environment_error());
  cpprun_store_close(NULL);
  return store == NULL ? 0 : 1;
}

static int snapshots(void) {
  cpprun_enable_graceful_stop();
  printf("may commit: %d\n", cpprun_request_commit(20));
  cpprun_report_snapshot(20, "step-20");
  return CPPRUN_STOPPED_RESUMABLE;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "work";
  cpprun_start(CPPRUN_KEEPS_MALLOC);
  if (strcmp(how, "work") == 0) return work();
  if (strcmp(how, "errors") == 0) return errors();
  if (strcmp(how, "snapshots") == 0) return snapshots();
  if (strcmp(how, "report") == 0) {
    printf("written: %d\n", cpprun_report_error("no data here"));
    return 5;
  }
  if (strcmp(how, "faults") == 0) {
    for (int step = 0; step < 4; ++step) cpprun_fault_point(-1, step);
    puts("trained");
    return 0;
  }
  abort();
}

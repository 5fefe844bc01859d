// Symbols that Debian 12's libstdc++ and its headers need and older versions of glibc lack. Only
// packaging/wheel/relink.py links this file, into the programs of a wheel.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

// Since glibc 2.32. Stays 0: reference counts are then always atomic.
char __libc_single_threaded = 0;

// Since glibc 2.36; std::random_device calls it.
uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) abort();
  return value;
}

// Since glibc 2.30; std::condition_variable::wait_for calls it. A change of the wall clock ends the
// wait early or late, as libstdc++ has it with an older glibc.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) {
    wall.tv_nsec += 1000000000;
    --wall.tv_sec;
  } else if (wall.tv_nsec >= 1000000000) {
    wall.tv_nsec -= 1000000000;
    ++wall.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &wall);
}

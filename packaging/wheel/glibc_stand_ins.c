// Symbols that Debian 12's libstdc++ needs and older versions of glibc lack. Only
// packaging/wheel/relink.py links this file, into the programs of a wheel.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// Since glibc 2.32. Stays 0: reference counts are then always atomic.
char __libc_single_threaded = 0;

// Since glibc 2.36; std::random_device calls it.
uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) abort();
  return value;
}

// What libstdc++ of Debian 12 asks of glibc and older ones lack: packaging/wheel/relink.py links it
// into the programs of a wheel. Nothing else includes it.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// From glibc 2.32 on. Never set: reference counts are atomic even before there are threads.
char __libc_single_threaded = 0;

// From glibc 2.36 on; std::random_device calls it.
uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) abort();
  return value;
}

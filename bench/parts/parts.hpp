// The parts that are counted and timed: small operations of cpprun, each as a loop with a given
// number of iterations.
//
//   BENCH_PART(store_get) { auto store = ...; return [store](size_t n) { while (n--) ...; }; }
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace cpprun::bench {

using Loop = std::function<void(size_t iterations)>;
using MakePart = std::function<Loop()>;

// By name. A MakePart does the set-up, which is not counted, and returns the loop.
std::map<std::string, MakePart>& parts();

struct Part {
  Part(const char* name, MakePart make) { parts()[name] = std::move(make); }
};

// Keeps the compiler from removing the computation of an unused value.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace cpprun::bench

#define BENCH_PART(name)                                              \
  static ::cpprun::bench::Loop make_##name();                         \
  static const ::cpprun::bench::Part part_##name(#name, make_##name); \
  static ::cpprun::bench::Loop make_##name()

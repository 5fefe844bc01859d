// The parts that are counted and timed: small pieces of the product, each as a loop that can be run
// any number of times.
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

// By name; what is made before the loop is not counted.
std::map<std::string, MakePart>& parts();

struct Part {
  Part(const char* name, MakePart make) { parts()[name] = std::move(make); }
};

// Keeps the compiler from leaving out what nobody reads.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace cpprun::bench

#define BENCH_PART(name)                                              \
  static ::cpprun::bench::Loop make_##name();                         \
  static const ::cpprun::bench::Part part_##name(#name, make_##name); \
  static ::cpprun::bench::Loop make_##name()

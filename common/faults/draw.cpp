#include "common/faults/draw.hpp"

#include <algorithm>
#include <cmath>

namespace cpprun::faults {
namespace {

// The purpose of a random number. Numbers for different purposes are independent.
enum class Use : uint64_t { Rank, Node, Step, Epoch, Round, Attempt, After, Gap, Victim };

// The mixing step of SplitMix64 (Steele, Lea and Flood, 2014).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t number(uint64_t seed, size_t fault, Use use, int64_t nth = 0) {
  const uint64_t of_fault = mix(mix(seed) ^ fault);
  return mix(mix(of_fault ^ static_cast<uint64_t>(use)) ^ static_cast<uint64_t>(nth));
}

void draw_one(std::optional<Span>& span, uint64_t draw) {
  if (!span) return;
  const uint64_t count = static_cast<uint64_t>(span->to - span->from) + 1;
  span->from += static_cast<int64_t>(draw % count);
  span->to = span->from;
}

}  // namespace

Plan drawn(Plan plan, uint64_t seed) {
  plan.seed = seed;
  for (size_t i = 0; i < plan.faults.size(); ++i) {
    Fault& fault = plan.faults[i];
    if (fault.rank) fault.rank->draw = number(seed, i, Use::Rank);
    if (fault.node) fault.node->draw = number(seed, i, Use::Node);
    draw_one(fault.step, number(seed, i, Use::Step));
    draw_one(fault.epoch, number(seed, i, Use::Epoch));
    draw_one(fault.round, number(seed, i, Use::Round));
    draw_one(fault.attempt, number(seed, i, Use::Attempt));
    draw_one(fault.after_ns, number(seed, i, Use::After));
  }
  return plan;
}

Duration gap(uint64_t seed, size_t fault, int64_t nth, Duration mean) {
  const uint64_t draw = number(seed, fault, Use::Gap, nth);
  const double share = static_cast<double>(draw >> 11) * 0x1p-53;  // from 0 to below 1
  const double gap = -std::log1p(-share) * static_cast<double>(mean.count());
  return std::max(Duration(std::chrono::milliseconds(1)), Duration(static_cast<int64_t>(gap)));
}

uint64_t victim(uint64_t seed, size_t fault, int64_t nth) {
  return number(seed, fault, Use::Victim, nth);
}

}  // namespace cpprun::faults

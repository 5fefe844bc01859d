// How often a training saves its state, so that saves and repeated steps together cost the least
// time (J. W. Young, A first order approximation to the optimum checkpoint interval, 1974). Python
// counterpart: cpprun_worker/_snapshot/schedule.py.
//
// Pure.
#pragma once

#include <cstdint>

namespace cpprun {

// The interval in seconds, if a save costs `cost` seconds and a rollback every `between` seconds
// loses half an interval on average. At least 10 x cost, at most an hour.
double best_save_interval(double cost, double between);

// Estimated seconds between rollbacks after `rollbacks` of them in `seconds` of training. Four more
// hours and one more rollback are assumed, so that the first estimate is four hours.
double time_between_rollbacks(double seconds, int64_t rollbacks);

// Seconds until all ranks read the clock together again, `left` seconds before the next of saves
// that come each `interval` seconds: when it is due, but within a second, since steps may become
// longer. A save that is due (`left` <= 0) may be left out, and is tried again.
double time_until_poll(double left, double interval);

}  // namespace cpprun

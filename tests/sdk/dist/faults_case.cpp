// One rank's part in tests of failures between ranks. Without a launcher, so that the other ranks
// survive to report.
#include <unistd.h>

#include <chrono>
#include <csignal>

#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/objects.hpp"
#include "cpprun/worker/main.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

using Clock = std::chrono::steady_clock;

// Prints how `f` ended, and its duration in whole seconds.
void print_end(const std::string& what, const std::function<void()>& f) {
  const auto begin = Clock::now();
  const std::string who = "rank " + launched_rank() + " " + what + ": ";
  std::string end = "well";
  try {
    f();
  } catch (const dist::DistNetworkError& error) {
    end = std::string("DistNetworkError ") + error.what();
  } catch (const dist::DistTimeoutError& error) {
    end = std::string("DistTimeoutError ") + error.what();
  } catch (const dist::DistMismatchError& error) {
    end = std::string("DistMismatchError ") + error.what();
  } catch (const dist::DistStateError& error) {
    end = std::string("DistStateError ") + error.what();
  } catch (const dist::DistArgumentError& error) {
    end = std::string("DistArgumentError ") + error.what();
  } catch (const dist::DistError& error) {
    end = std::string("DistError ") + error.what();
  }
  const auto took = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin);
  print_line(who + end + " | " + std::to_string(took.count()) + " s");
}

using Reduce = std::function<void(const at::Tensor&)>;

void all_reduce_twice(
    const std::function<void()>& between,
    const Reduce& second = [](const at::Tensor& x) { dist::all_reduce(x); }) {
  const auto x = torch::ones({1 << 20});
  print_end("first", [&] { dist::all_reduce(x); });
  between();
  print_end("second", [&] { second(x); });
  print_end("third", [&] { dist::all_reduce(x); });
}

bool is_rank(int rank) { return dist::get_rank() == rank; }

// For a rank that must stay alive without taking part: waits until the others set `key`.
void wait_for_others(const char* key) {
  auto store = dist::default_group().store();
  if (is_rank(1)) {
    store.wait({key}, std::chrono::seconds(60));
  } else {
    store.set(key, "1");
  }
}

}  // namespace

SDK_CASE(peer_killed) {
  const auto group = dist::init_process_group(options_of(args));
  all_reduce_twice([] {
    if (is_rank(1)) kill(getpid(), SIGKILL);
  });
  return 0;
}

SDK_CASE(peer_killed_before_callback) {
  const auto group = dist::init_process_group(options_of(args));
  const Reduce with_callback = [](const at::Tensor& x) {
    dist::all_reduce(x, dist::ReduceOp::SUM, {.async_op = true})
        .then([] { print_line("called"); })
        .wait();
  };
  all_reduce_twice(
      [] {
        if (is_rank(1)) kill(getpid(), SIGKILL);
      },
      with_callback);
  return 0;
}

SDK_CASE(peer_stopped) {
  const auto group = dist::init_process_group(options_of(args));
  all_reduce_twice([] {
    if (is_rank(1)) kill(getpid(), SIGSTOP);
  });
  return 0;
}

SDK_CASE(barrier_missed) {
  const auto group = dist::init_process_group(options_of(args));
  if (!is_rank(1)) print_end("barrier", [] { dist::barrier(); });
  wait_for_others("done");
  return 0;
}

SDK_CASE(monitored_barrier_missed) {
  const auto group = dist::init_process_group(options_of(args));
  const auto limit = std::chrono::seconds(2);
  dist::monitored_barrier();
  if (!is_rank(1)) print_end("monitored", [&] { dist::monitored_barrier({}, limit); });
  dist::barrier();
  // The late rank learns that it was missing; then all ranks are in step again.
  if (is_rank(1)) print_end("late", [&] { dist::monitored_barrier({}, limit); });
  print_end("again", [&] { dist::monitored_barrier({}, limit); });
  return 0;
}

// Rank 1 misses three barriers, and is in step again after one error.
SDK_CASE(monitored_barriers_missed) {
  const auto group = dist::init_process_group(options_of(args));
  const auto limit = std::chrono::seconds(2);
  for (int i = 0; i < 3 && !is_rank(1); ++i) {
    print_end("monitored", [&] { dist::monitored_barrier({}, limit); });
  }
  dist::barrier();
  if (is_rank(1)) print_end("late", [&] { dist::monitored_barrier({}, limit); });
  dist::barrier();
  for (int i = 0; i < 2; ++i) print_end("again", [] { dist::monitored_barrier(); });
  return 0;
}

SDK_CASE(collective_after_destroy) {
  const auto group = dist::init_process_group(options_of(args));
  const dist::ProcessGroup kept = group;
  auto dropped = dist::all_reduce(torch::ones({8}), dist::ReduceOp::SUM, {.async_op = true});
  dist::destroy_process_group();
  print_end("default", [] { dist::all_reduce(torch::ones({2})); });
  print_end("kept",
            [&] { dist::all_reduce(torch::ones({2}), dist::ReduceOp::SUM, {.group = kept}); });
  return 0;
}

SDK_CASE(exception_on_one) {
  char program[] = "case";
  char* argv[] = {program, nullptr};
  return cpprun::main(1, argv, [&](cpprun::Args) {
    const auto group = dist::init_process_group(options_of(args));
    dist::barrier();
    if (is_rank(1)) throw std::runtime_error("out of ideas");
    print_end("all_reduce", [] { dist::all_reduce(torch::ones({8})); });
    return 0;
  });
}

SDK_CASE(dropped) {
  const auto group = dist::init_process_group(options_of(args));
  const int peer = 1 - dist::get_rank();
  auto x = torch::zeros({4});
  dist::isend(torch::full({4}, 5.0), peer, 1);
  for (int i = 0; i < 50; ++i) {
    dist::all_reduce(torch::ones({10'000}), dist::ReduceOp::SUM, {.async_op = true});
  }
  dist::recv(x, peer, 1);
  auto never = dist::irecv(torch::zeros({4}), peer, 99);
  print_line("rank " + launched_rank() + " got: " + std::to_string(x.sum().item<int>()) + " " +
             (never.wait_for(std::chrono::milliseconds(50)) ? "done" : "waiting"));
  dist::barrier();
  return 0;
}

SDK_CASE(debug_mismatch) {
  const auto group = dist::init_process_group(options_of(args));
  dist::set_debug_checks(true);
  const bool odd = is_rank(1);
  dist::all_reduce(torch::ones({2}));
  print_end("shape", [&] { dist::broadcast(torch::ones({odd ? 4 : 2}), 0); });
  print_end("dtype",
            [&] { dist::all_reduce(odd ? torch::ones({2}) : torch::ones({2}, at::kInt)); });
  print_end("op", [&] {
    dist::all_reduce(torch::ones({2}), odd ? dist::ReduceOp::MAX : dist::ReduceOp::SUM);
  });
  print_end("call", [&] {
    const auto x = torch::ones({2});
    odd ? dist::broadcast(x, 0) : dist::all_reduce(x);
  });
  print_end("objects", [&] {
    if (odd) return static_cast<void>(dist::barrier());
    dist::all_gather_object(1);
  });
  print_end("splits", [&] {
    const int r = dist::get_rank();
    // Rank 0 sends two rows to rank 1, which expects one; all else matches.
    const std::vector<int64_t> ones{1, 1, 1}, two{1, 2, 1};
    dist::all_to_all_single(torch::zeros({3, 2}), torch::ones({r == 0 ? 4 : 3, 2}), ones,
                            r == 0 ? two : ones);
  });
  print_end("parts", [&] {
    const auto one = torch::ones({1}), two = torch::ones({2});
    dist::all_to_all({one, one, one}, {one, one, odd ? two : one});
  });
  print_end("own", [&] { dist::all_to_all_single(torch::zeros({3}), torch::ones({6})); });
  // The call sent nothing, so the group is unchanged.
  print_end("well", [&] { dist::all_reduce(torch::ones({2})); });
  if (!odd) print_end("missing", [&] { dist::all_reduce(torch::ones({2})); });
  wait_for_others("all_printed");
  return 0;
}

SDK_CASE(object_mismatch) {
  const auto group = dist::init_process_group(options_of(args));
  const bool odd = is_rank(1);
  print_end("type", [&] {
    if (odd) return static_cast<void>(dist::all_gather_object(std::string("x")));
    dist::all_gather_object(1);
  });
  print_end("list", [&] { dist::scatter_object_list(std::vector<int>{1}, 0); });
  print_end("bytes", [&] {
    if (odd) return static_cast<void>(dist::all_gather_bytes("no pickle"));
    dist::all_gather_object(1);
  });
  // Rank 1 announces an object of 2^60 bytes and sends none.
  print_end("size", [&] {
    const auto lengths = torch::zeros({3}, at::kLong).chunk(3);
    if (odd) return static_cast<void>(dist::all_gather(lengths, at::full({1}, int64_t{1} << 60)));
    dist::all_gather_object(1);
  });
  dist::set_debug_checks(true);
  print_end("length", [&] {
    std::vector<int> list(odd ? 3 : 2, 7);
    dist::broadcast_object_list(list);
  });
  print_end("root", [&] { dist::gather_object(1, odd ? 1 : 0); });
  print_end("well", [&] { dist::all_gather_object(1); });
  return 0;
}

SDK_CASE(broadcast_of_two_shapes) {
  const auto group = dist::init_process_group(options_of(args));
  print_end("broadcast", [] { dist::broadcast(torch::ones({is_rank(1) ? 4 : 1024}), 0); });
  return 0;
}

}  // namespace cpprun::test

// Creating and destroying the default group on one rank.
#include <chrono>
#include <thread>

#include <torch/torch.h>

#include "cpprun/dist/native.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

using Clock = std::chrono::steady_clock;

long seconds_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
}

std::string self() {
  return "rank " + std::to_string(dist::get_rank()) + " of " +
         std::to_string(dist::get_world_size());
}

void print_sum() { print_line(self() + " sum " + std::to_string(sum_of_ranks())); }

// A collective that no other rank joins.
c10::intrusive_ptr<c10d::Work> lonely_collective(std::vector<at::Tensor>& tensors) {
  tensors = {torch::ones({1024})};
  return dist::native()->allreduce(tensors);
}

}  // namespace

SDK_CASE(form) {
  return printing_errors([&] {
    const auto begin = Clock::now();
    const auto group = dist::init_process_group(options_of(args));
    print_sum();
    if (seconds_since(begin) > 300) print_line("slow");
    dist::destroy_process_group();
  });
}

SDK_CASE(form_twice) {
  return printing_errors([&] {
    for (int i = 0; i < 3; ++i) {
      const auto group = dist::init_process_group(options_of(args));
      print_sum();
    }
  });
}

SDK_CASE(form_solo) {
  return printing_errors([&] {
    const auto group = dist::init_process_group_or_single(options_of(args));
    print_sum();
  });
}

SDK_CASE(never_destroy) {
  return printing_errors([&] {
    static const auto& group = *new auto(dist::init_process_group(options_of(args)));
    static_cast<void>(group);
    print_sum();
  });
}

SDK_CASE(destroy_twice) {
  return printing_errors([&] {
    const auto group = dist::init_process_group(options_of(args));
    print_sum();
    dist::destroy_process_group();
    dist::destroy_process_group();
    print_line(std::string("initialized ") + (dist::is_initialized() ? "yes" : "no"));
  });
}

SDK_CASE(before_init) {
  return printing_errors([] { sum_of_ranks(); });
}

SDK_CASE(init_twice) {
  return printing_errors([&] {
    const auto group = dist::init_process_group(options_of(args));
    const auto again = dist::init_process_group(options_of(args));
  });
}

SDK_CASE(after_destroy) {
  return printing_errors([&] {
    const auto guard = dist::init_process_group(options_of(args));
    const dist::ProcessGroup group = guard;
    dist::destroy_process_group();
    sum_of_ranks(group);
  });
}

// Destroys the group although a collective cannot finish: only rank 0 calls it.
SDK_CASE(destroy_in_flight) {
  return printing_errors([&] {
    const auto guard = dist::init_process_group(options_of(args));
    std::vector<at::Tensor> tensors;
    const auto begin = Clock::now();
    const auto work = dist::get_rank() == 0 ? lonely_collective(tensors) : nullptr;
    const std::string name = self();
    dist::native()->getStore()->add("arrived", 1);
    while (dist::native()->getStore()->add("arrived", 0) < dist::get_world_size()) {
    }
    dist::destroy_process_group();
    print_line(name + (seconds_since(begin) < 900 ? " left in time" : " left late"));
  });
}

// The error leaves the scope of the guard immediately, whatever the group is doing.
SDK_CASE(throw_in_flight) {
  const auto begin = Clock::now();
  try {
    const auto guard = dist::init_process_group(options_of(args));
    std::vector<at::Tensor> tensors;
    const auto work = lonely_collective(tensors);
    throw std::runtime_error("own error");
  } catch (const std::runtime_error& error) {
    const bool is_early = Clock::now() - begin < std::chrono::seconds(300);
    print_line("rank " + launched_rank() + " " + error.what() + (is_early ? " early" : " late"));
  }
  return 0;
}

}  // namespace cpprun::test

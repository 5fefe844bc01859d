// Groups within a world of several ranks; twin: twins/form_group.py.
#include <torch/torch.h>

#include "cpprun/dist/native.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

std::string this_rank() { return "rank " + std::to_string(dist::get_rank()); }

void print_sum(const std::string& where, const dist::ProcessGroup& group) {
  print_line(this_rank() + " in " + where + " sum " + std::to_string(sum_of_ranks(group)));
}

}  // namespace

SDK_CASE(sub_groups) {
  return printing_errors([&] {
    const auto world = dist::init_process_group(options_of(args));
    const int last = dist::get_world_size() - 1;
    print_line(this_rank() + " of " + std::to_string(last + 1) + " sum " +
               std::to_string(sum_of_ranks()));
    const auto group = dist::new_group({last, 0});
    if (group.rank() >= 0) print_sum("group", group);
    print_sum("all", dist::new_group({}));
  });
}

// A collective on a group that this process does not belong to.
SDK_CASE(not_a_member) {
  return printing_errors([&] {
    const auto world = dist::init_process_group(options_of(args));
    const auto group = dist::new_group({0});
    print_line(this_rank() + " is " + std::to_string(group.rank()) + " of " +
               std::to_string(group.size()));
    sum_of_ranks(group);
  });
}

// Rank 2 passes another list than ranks 1 and 3, of whom none can make its group without rank 2.
// Rank 0, a member of neither, hosts the store until the others have printed their errors.
SDK_CASE(lists_differ) {
  return printing_errors([&] {
    const auto world = dist::init_process_group(options_of(args));
    const auto store = dist::native()->getStore();
    const int rank = dist::get_rank();
    printing_errors([&] {
      dist::new_group(rank == 2 ? std::vector<int>{1, 2} : std::vector<int>{1, 2, 3});
    });
    store->set("printed by " + std::to_string(rank), std::string("1"));
    if (rank == 0) store->wait({"printed by 1", "printed by 2", "printed by 3"});
  });
}

// The group's own timeout: rank 0 waits for rank 1, which is alive but does not call.
SDK_CASE(own_timeout) {
  return printing_errors([&] {
    const auto world = dist::init_process_group(options_of(args));
    dist::InitOptions options;
    options.timeout = std::chrono::milliseconds(1500);
    const auto group = dist::new_group({}, options);
    const auto store = dist::native()->getStore();
    if (dist::get_rank() == 0) {
      printing_errors([&] { sum_of_ranks(group); });
      store->set("is_over", std::string("1"));
    }
    store->wait({"is_over"});
  });
}

}  // namespace cpprun::test

// Subgroups, a device mesh, lists of objects between two ranks; twins/mesh.py prints the same.
#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/device_mesh.hpp"
#include "cpprun/dist/objects.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

using TextList = std::vector<std::string>;

void print_of_rank(const std::string& text) {
  print_line("rank " + std::to_string(dist::get_rank()) + " " + text);
}

// The sum of the ranks in the group.
std::string sum_of(const dist::ProcessGroup& group) {
  const at::Tensor sum = torch::full({}, dist::get_rank(), torch::kLong);
  dist::all_reduce(sum, dist::ReduceOp::SUM, {.group = group});
  return std::to_string(sum.item<int64_t>());
}

}  // namespace

SDK_CASE(mesh) {
  const auto world = dist::init_process_group({.backend = "gloo"});
  const auto [own, all] = dist::new_subgroups(2);
  print_of_rank("subgroup " + sum_of(own) + " of " + std::to_string(all.size()));
  const auto listed = dist::new_subgroups_by_enumeration({{0, 3}, {1, 2}}).current;
  print_of_rank("listed " + sum_of(listed));
  const auto mesh = dist::init_device_mesh("cpu", {2, 2}, {"replicate", "shard"});
  const auto place = mesh.get_coordinate();
  print_of_rank("place " + std::to_string(place[0]) + " " + std::to_string(place[1]));
  for (const char* name : {"replicate", "shard"}) {
    print_of_rank(std::string(name) + " " + sum_of(mesh.get_group(name)) + " local " +
                  std::to_string(mesh.get_local_rank(name)) + " size " +
                  std::to_string(mesh[name].size()) + " " + sum_of(mesh[name].get_group()));
  }
  print_of_rank("mesh " + std::to_string(mesh.ndim()) + " " + std::to_string(mesh.size()) + " " +
                std::to_string(mesh.size(1)) + " " + sum_of(mesh.get_group(0)));
  return 0;
}

SDK_CASE(object_lists) {
  return printing_errors([&] {
    const auto world = dist::init_process_group({.backend = "gloo"});
    const int rank = dist::get_rank();
    if (rank == 0) {
      TextList list(2);
      const int from = dist::recv_object_list(list, 1);
      print_line("from " + std::to_string(from) + " " + list[0] + " " +
                 std::to_string(list[1].size()));
      std::vector<at::Tensor> tensors(1);
      const int sender = dist::recv_object_list(tensors);
      print_line("from " + std::to_string(sender) + " " +
                 std::to_string(tensors[0].sum().item<int64_t>()));
      dist::send_object_list(TextList{"back"}, 1);
      TextList wrong(1);
      dist::recv_object_list(wrong, 1);
    } else {
      dist::send_object_list(TextList{"one", std::string(40 << 20, 'x')}, 0);
      dist::send_object_list(std::vector<at::Tensor>{torch::arange(5)}, 0);
      TextList back(1);
      dist::recv_object_list(back, 0);
      print_line("from 0 " + back[0]);
      dist::send_object_list(std::vector<int>{1}, 0);
    }
  });
}

// What the calls refuse, before anything is sent.
SDK_CASE(mesh_refusals) {
  const auto world = dist::init_process_group({.backend = "gloo"});
  printing_errors([] { dist::new_subgroups(3); });
  printing_errors([] { dist::new_subgroups_by_enumeration({{0, 1}, {1}}); });
  printing_errors([] { dist::init_device_mesh("cpu", {2, 2}); });
  printing_errors([] { dist::init_device_mesh("cpu", {2}, {"a", "b"}); });
  printing_errors([] { dist::init_device_mesh("tpu", {2}); });
  const auto mesh = dist::init_device_mesh("cpu", {1, 2}, {"a", "b"});
  printing_errors([&] { mesh.get_group("c"); });
  printing_errors([&] { mesh.get_group(2); });
  printing_errors([&] { mesh.get_group(); });
  return 0;
}

}  // namespace cpprun::test

// Object collectives with Python ranks: twins/objects.py makes the same calls.
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/objects.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

using dist::Object;
using nlohmann::json;

void print_json(const std::string& what, const json& value) {
  print_line("rank " + std::to_string(dist::get_rank()) + " " + what + " " + value.dump());
}

// What Python's repr() must be of `samples` in twins/objects.py.
std::vector<Object> own_samples() {
  return {dist::None{},
          true,
          -7,
          ~uint64_t{0},
          dist::BigInt{std::string("\0\0\0\0\0\0\0\0\x40", 9)},
          0.5,
          std::complex<double>(1, -2),
          "gr\xc3\xbc\xc3\x9f",
          std::string("\x00\xff", 2),
          dist::List{{1, dist::List{{}}}},
          dist::Tuple{{1, "x"}},
          dist::Dict{{{"a", 1}, {2, dist::None{}}}},
          torch::kBFloat16,
          torch::arange(6).reshape({2, 3}),
          torch::ones({2}, torch::kBFloat16).requires_grad_(),
          torch::zeros({0, 3})};
}

// Reads each of Python's samples as a C++ type.
void read_typed(const std::vector<Object>& samples) {
  const auto as = [&]<class T>(size_t i, const T&) {
    return dist::deserialize<T>(dist::dumps(samples.at(i)));
  };
  using Pair = std::pair<int, std::string>;
  json all{as(1, true),
           as(2, int8_t{}),
           as(3, uint64_t{}),
           as(5, 0.0),
           as(7, std::string()),
           as(8, std::string()).size(),
           as(9, json()),
           as(10, Pair()),
           as(11, Object()).find("a")->type_name(),
           as(13, at::Tensor()).sum().item<int>(),
           as(14, at::Tensor()).requires_grad(),
           as(15, at::Tensor()).size(1)};
  print_json("typed", all);
}

}  // namespace

// Every collective once; the objects of the other rank come back to it as they were.
SDK_CASE(objects) {
  return printing_errors([&] {
    const auto world = dist::init_process_group({.backend = "gloo"});
    const int rank = dist::get_rank(), other = 1 - rank;
    auto everybody = dist::all_gather_object(Object(dist::List{own_samples()}));
    const auto samples = *everybody.at(static_cast<size_t>(other)).items();
    read_typed(samples);
    dist::all_gather_object(everybody.at(static_cast<size_t>(other)));
    for (int root : {0, 1}) {
      print_json("gather", json(dist::gather_object(json{{"rank", rank}}, root)));
      std::vector<json> list{rank, json{{"from", rank}}, "x"};
      dist::broadcast_object_list(list, root);
      print_json("broadcast", list);
      const std::vector<std::vector<int>> parts{{rank, 0}, {rank, 1, 1}};
      print_json("scatter", dist::scatter_object_list(parts, root));
    }
    std::vector<json> list{"one", 2, nullptr};
    if (rank == 0) {
      dist::send_object_list(list, 1);
      dist::recv_object_list(list, 1);
    } else {
      dist::recv_object_list(list);
      dist::send_object_list(std::vector<json>{list[2], list[1], list[0]}, 0);
    }
    print_json("list", list);
  });
}

// Objects that C++ has no type for are errors, and the group goes on.
SDK_CASE(foreign_objects) {
  const auto world = dist::init_process_group({.backend = "gloo"});
  for (int i = 0; i < 4; ++i) {
    printing_errors([] { dist::all_gather_object(Object()); });
  }
  print_json("well", dist::all_gather_object(dist::get_rank()));
  return 0;
}

}  // namespace cpprun::test

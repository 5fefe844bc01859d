// The same calls with the same numbers as twins/collectives.py; prints the results as lines.
#include <functional>

#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/objects.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

using dist::ReduceOp;

struct Type {
  const char* name;
  at::ScalarType type;
};

constexpr Type kTypes[] = {{"float32", at::kFloat},
                           {"float64", at::kDouble},
                           {"float16", at::kHalf},
                           {"bfloat16", at::kBFloat16},
                           {"int8", at::kChar},
                           {"uint8", at::kByte},
                           {"int32", at::kInt},
                           {"int64", at::kLong},
                           {"bool", at::kBool},
                           {"complex64", at::kComplexFloat},
                           {"complex128", at::kComplexDouble}};
constexpr ReduceOp kOps[] = {ReduceOp::SUM,  ReduceOp::PRODUCT, ReduceOp::MIN,  ReduceOp::MAX,
                             ReduceOp::BAND, ReduceOp::BOR,     ReduceOp::BXOR, ReduceOp::AVG};

std::string text_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.is_complex() ? at::view_as_real(tensor.contiguous()) : tensor;
  const at::Tensor numbers = plain.cpu().to(at::kDouble).reshape({-1}).contiguous();
  std::string text;
  char number[40];
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    std::snprintf(number, sizeof number, " %.9g", numbers.data_ptr<double>()[i]);
    text += number;
  }
  return text;
}

void print_result(const std::string& what, const at::Tensor& result) {
  print_line("rank " + std::to_string(dist::get_rank()) + " " + what + text_of(result));
}

void print_or_refused(const std::string& what, const std::function<at::Tensor()>& f) {
  try {
    print_result(what, f());
  } catch (const dist::DistUnsupportedError&) {
    print_line("rank " + std::to_string(dist::get_rank()) + " " + what + " refused");
  }
}

at::TensorOptions here(at::ScalarType type = at::kFloat) {
  return at::TensorOptions(type).device(dist::local_device());
}

at::Tensor numbers(std::vector<double> values, at::ScalarType type) {
  return torch::tensor(values, at::kDouble).to(here(type));
}

bool is_over_nccl() { return dist::get_backend() == "nccl"; }

void reductions_of(const Type& type, ReduceOp op) {
  const double r = dist::get_rank();
  const std::string what = std::string(" ") + dist::name(op) + " " + type.name;
  print_or_refused("all_reduce" + what, [&] {
    const auto x = numbers({r + 1, 6}, type.type);
    dist::all_reduce(x, op);
    return x;
  });
  print_or_refused("reduce" + what, [&] {
    const auto x = numbers({r + 1, 6}, type.type);
    dist::reduce(x, 2, op);
    return dist::get_rank() == 2 ? x : at::zeros({1}, here());
  });
  if (at::isComplexType(type.type)) return;
  const auto input = numbers({r + 1, 6, r + 2, 5, r, 3}, type.type);
  print_or_refused("reduce_scatter" + what, [&] {
    const auto x = at::zeros({2}, here(type.type));
    dist::reduce_scatter(x, input.split(2), op);
    return x;
  });
  print_or_refused("reduce_scatter_tensor" + what, [&] {
    const auto x = at::zeros({2}, here(type.type));
    dist::reduce_scatter_tensor(x, input, op);
    return x;
  });
}

std::vector<at::Tensor> three(at::ScalarType type) {
  return {at::zeros({2}, here(type)), at::zeros({2}, here(type)), at::zeros({2}, here(type))};
}

void moves_of(const Type& type) {
  const double r = dist::get_rank();
  const std::string what = std::string(" ") + type.name;
  const auto own = numbers({r, 10 * r}, type.type);
  auto x = own.clone();
  dist::broadcast(x, 1);
  print_result("broadcast" + what, x);
  auto list = three(type.type);
  dist::all_gather(list, own);
  print_result("all_gather" + what, at::cat(list));
  x = at::zeros({6}, here(type.type));
  dist::all_gather_into_tensor(x, own);
  print_result("all_gather_into_tensor" + what, x);
  x = at::zeros({3, 2}, here(type.type));
  dist::all_gather_into_tensor(x, own);
  print_result("stacked" + what, x);
  const bool is_root = dist::get_rank() == 1;
  list = is_root ? three(type.type) : std::vector<at::Tensor>{};
  dist::gather(own, list, 1);
  print_result("gather" + what, is_root ? at::cat(list) : own);
  if (is_root) list = {own + own, own + own + own, own};
  x = at::zeros({2}, here(type.type));
  dist::scatter(x, list, 1);
  print_result("scatter" + what, x);
}

void exchanges_of(const Type& type) {
  const int r = dist::get_rank();
  const std::string what = std::string(" ") + type.name;
  const auto own = numbers({10.0 * r, 10.0 * r + 1, 10.0 * r + 2}, type.type);
  auto x = at::zeros({3}, here(type.type));
  dist::all_to_all_single(x, own);
  print_result("all_to_all_single" + what, x);
  // Rank r sends r + 1 rows to each, so gets 1, 2 and 3 of them.
  const auto rows = at::full({3 * (r + 1), 2}, r, here(type.type));
  x = at::zeros({6, 2}, here(type.type));
  dist::all_to_all_single(x, rows, {1, 2, 3}, {r + 1, r + 1, r + 1});
  print_result("all_to_all_single splits" + what, x);
  std::vector<at::Tensor> list{at::zeros({1, 2}, here(type.type)),
                               at::zeros({2, 2}, here(type.type)),
                               at::zeros({3, 2}, here(type.type))};
  dist::all_to_all(list, rows.split(r + 1));
  print_result("all_to_all" + what, at::cat(list));
}

void sub_groups() {
  const int r = dist::get_rank();
  const auto group = dist::new_group({0, 2});
  if (r == 1) return;
  auto x = numbers({r + 1.0, 6}, at::kFloat);
  dist::all_reduce(x, ReduceOp::AVG, {.group = group});
  print_result("sub all_reduce", x);
  x = numbers({r + 1.0}, at::kFloat);
  dist::broadcast(x, 2, {.group = group});
  print_result("sub broadcast", x);
  std::vector<at::Tensor> list;
  if (r == 2) list = {at::zeros({1}, here()), at::zeros({1}, here())};
  dist::gather(numbers({r + 0.5}, at::kFloat), list, 2, {.group = group});
  print_result("sub gather", r == 2 ? at::cat(list) : at::zeros({1}, here()));
  if (r == 0) dist::send(numbers({7.0}, at::kFloat), 2, 5, group);
  if (r == 2) print_line("rank 2 sub recv from " + std::to_string(dist::recv(x, 0, 5, group)));
  dist::barrier({.group = group});
}

void point_to_point() {
  const int r = dist::get_rank(), next = (r + 1) % 3, before = (r + 2) % 3;
  const auto own = numbers({r + 0.5}, at::kFloat);
  auto x = at::zeros({1}, here()), y = at::zeros({1}, here());
  auto first = dist::isend(own, next, 1), second = dist::isend(own + 10, next, 2);
  auto later = dist::irecv(y, before, 2);
  dist::recv(x, before, 1);
  for (auto* work : {&first, &second, &later}) work->wait();
  print_result("tags", at::cat({x, y}));
  auto works = dist::batch_isend_irecv(
      {{dist::P2POp::Kind::Send, own * 2, next}, {dist::P2POp::Kind::Recv, x, before}});
  for (auto& work : works) work.wait();
  print_result("batch", x);
  if (r != 0) return dist::send(own, 0, 9);
  double sum = 0;
  for (int i = 0; i < 2; ++i) sum += 100 * dist::recv(x, -1, 9) + x.item<double>();
  print_result("anybody", numbers({sum}, at::kDouble));
}

void asynchronous() {
  std::vector<at::Tensor> tensors;
  std::vector<dist::Work> works;
  for (int i = 0; i < 8; ++i) {
    tensors.push_back(at::full({100}, dist::get_rank() + 0.1 * i, here()));
    const auto op = i % 2 == 0 ? ReduceOp::SUM : ReduceOp::AVG;
    works.push_back(dist::all_reduce(tensors.back(), op, {.async_op = true}));
  }
  for (size_t i = works.size(); i-- > 0;) works[i].wait();
  for (const auto& tensor : tensors) print_result("async", tensor.narrow(0, 98, 2));
}

void continuations() {
  const double r = dist::get_rank();
  const auto x = numbers({r + 1, 6}, at::kFloat);
  dist::all_reduce(x, ReduceOp::SUM, {.async_op = true})
      .then([x] { x.div_(3); })
      .then([x] { x.add_(0.1); })
      .wait();
  print_result("then", x);
  auto failed = dist::all_reduce(x, ReduceOp::MAX, {.async_op = true}).then([] {
    throw std::runtime_error("out of ideas");
  });
  try {
    failed.then([x] { x.zero_(); }).wait();
  } catch (const std::runtime_error&) {
    print_result("then failed", x);
  }
}

void objects() {
  using nlohmann::json;
  const int r = dist::get_rank();
  const std::string who = "rank " + std::to_string(r) + " ";
  const json own{{"rank", r}, {"text", std::string(static_cast<size_t>(r * 5), 'x')}};
  print_line(who + "all_gather_object " + json(dist::all_gather_object(own)).dump());
  print_line(who + "gather_object " + json(dist::gather_object(own, 1)).dump());
  std::vector<json> list{own, r, nullptr};
  dist::broadcast_object_list(list, 2);
  print_line(who + "broadcast_object_list " + json(list).dump());
  list = r == 0 ? std::vector<json>{"a", 1, own} : std::vector<json>{};
  print_line(who + "scatter_object_list " + dist::scatter_object_list(list, 0).dump());
}

}  // namespace

SDK_CASE(differential) {
  return printing_errors([&] {
    const auto group = dist::init_process_group(options_of(args));
    for (const Type& type : kTypes) {
      for (const ReduceOp op : kOps) reductions_of(type, op);
      moves_of(type);
      exchanges_of(type);
    }
    sub_groups();
    if (!is_over_nccl()) point_to_point();  // NCCL has no tags
    asynchronous();
    continuations();
    objects();
    dist::barrier();
  });
}

}  // namespace cpprun::test

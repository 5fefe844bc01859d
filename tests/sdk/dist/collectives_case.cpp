// Collectives beyond what Python supports on Gloo, and rejected arguments.
#include <functional>
#include <map>
#include <numeric>

#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/objects.hpp"
#include "tests/sdk/dist/init_support.hpp"

namespace cpprun::test {
namespace {

void expect(bool is_true, const std::string& what) {
  if (!is_true) print_line("WRONG " + what + " on rank " + launched_rank());
}

void expect_equal(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  expect(got.sizes() == wanted.sizes() && at::equal(got, wanted.to(got.scalar_type())), what);
}

template <class Error>
void expect_refused(const std::string& part, const std::function<void()>& f) {
  try {
    f();
    print_line("WRONG not refused: " + part);
  } catch (const Error& error) {
    expect(std::string(error.what()).find(part) != std::string::npos,
           std::string("text ") + error.what());
  }
}

void other_dtypes(int r) {
  for (const auto type : {at::kShort, at::ScalarType::UInt16, at::kComplexDouble}) {
    auto x = torch::full({3}, r, at::kInt).to(type);
    dist::broadcast(x, 2);
    expect_equal(x.to(at::kInt), torch::full({3}, 2, at::kInt), "broadcast of a rare dtype");
    auto all = torch::zeros({3, 2}, at::kInt).to(type);
    dist::all_gather_into_tensor(all, torch::full({2}, r, at::kInt).to(type));
    expect_equal(all.to(at::kInt), torch::tensor({{0, 0}, {1, 1}, {2, 2}}), "all_gather of one");
  }
  expect_refused<dist::DistUnsupportedError>(
      "Cannot use ReduceOp.SUM with dtype int16 on gloo",
      [] { dist::all_reduce(torch::ones({2}, at::kShort)); });
  auto flag = torch::tensor({r == 1, true, false});
  dist::all_reduce(flag);
  expect(flag.view(at::kByte).sum().item<int>() == 2, "a bool stays 0 or 1");
}

void views(int r) {
  const auto base = torch::arange(6, at::kFloat).reshape({2, 3}) + r;
  auto x = base.t();
  dist::all_reduce(x, dist::ReduceOp::AVG);
  expect_equal(base, torch::arange(6, at::kFloat).reshape({2, 3}) + 1, "all_reduce of a view");
  auto strided = torch::zeros({4, 2});
  auto column = strided.select(1, 1);
  dist::all_gather_into_tensor(strided.slice(0, 0, 3).select(1, 1), torch::full({1}, r + 1.0));
  expect_equal(column, torch::tensor({1, 2, 3, 0}), "all_gather into a column");
  auto leaf = torch::full({2}, r, at::kFloat).requires_grad_();
  dist::broadcast(leaf, 1);
  expect_equal(leaf.detach(), torch::ones({2}), "broadcast of a parameter");
  auto scalar = torch::tensor(r + 1.0);
  dist::all_reduce(scalar);
  expect(scalar.item<double>() == 6, "all_reduce of a scalar");
  auto empty = torch::zeros({0, 3});
  dist::all_reduce(empty);
  dist::broadcast(empty, 0);
}

void unequal(int r) {
  std::vector<at::Tensor> list{torch::zeros({1}), torch::zeros({2, 2}), torch::zeros({0})};
  const auto own = torch::full_like(list[static_cast<size_t>(r)], r + 1);
  dist::all_gather(list, own);
  expect_equal(list[0], torch::ones({1}), "all_gather unequal 0");
  expect_equal(list[1], torch::full({2, 2}, 2), "all_gather unequal 1");
}

// Rank r sends r + 1 rows to each.
void exchanges(int r) {
  const int64_t rows = r + 1;
  auto got = torch::zeros({6, 2}, at::kComplexDouble);
  const auto own = torch::full({3 * rows, 2}, r, at::kComplexDouble);
  dist::all_to_all_single(got, own, {1, 2, 3}, {rows, rows, rows});
  const auto wanted = torch::tensor({0, 1, 1, 2, 2, 2}).unsqueeze(1).expand({6, 2});
  expect_equal(at::real(got), wanted, "all_to_all_single of splits");
  auto even = torch::zeros({3, 2}, at::kShort);
  dist::all_to_all_single(even, torch::full({3, 2}, r, at::kShort));
  expect_equal(even, torch::arange(3).unsqueeze(1).expand({3, 2}), "all_to_all_single");
  std::vector<at::Tensor> list{torch::zeros({1}), torch::zeros({2}), torch::zeros({3})};
  const auto part = torch::full({rows}, r + 1.0);
  dist::all_to_all(list, {part, part, part});
  expect_equal(at::cat(list), torch::tensor({1, 2, 2, 3, 3, 3}), "all_to_all of lists");
  dist::all_to_all_single(torch::zeros({0, 3}), torch::zeros({0, 3}));
}

void wrong_arguments(int r) {
  using Error = dist::DistArgumentError;
  const auto x = torch::ones({2});
  expect_refused<Error>("src is global rank 7, which is not in the group; its ranks are [0, 1, 2]",
                        [&] { dist::broadcast(x, 7); });
  expect_refused<Error>("output has 2 tensors, wanted is one for each of the 3 ranks", [&] {
    dist::all_gather({x, x}, x);
  });
  expect_refused<Error>("output[1] is int32 [2] on cpu, wanted is float32 on cpu", [&] {
    dist::all_gather({x, x.to(at::kInt), x}, x);
  });
  expect_refused<Error>("is float32 [3], wanted is float32 [2]", [&] {
    const auto y = torch::ones({3});
    dist::all_gather({y, y, y}, x);
  });
  expect_refused<Error>("output is float32 [5] with 5 elements",
                        [&] { dist::all_gather_into_tensor(torch::ones({5}), x); });
  expect_refused<Error>("must be empty except on rank", [&] {
    dist::gather(x, r == 1 ? std::vector<at::Tensor>{x, x} : std::vector{x, x, x}, r == 1 ? 0 : 1);
  });
  expect_refused<Error>("its first dimension can't be cut into 3 equal parts",
                        [&] { dist::all_to_all_single(x, x); });
  expect_refused<Error>("are [1, 2, 3], wanted are 3 lengths that add up to 2", [&] {
    dist::all_to_all_single(x, x, {1, 2, 3}, {1, 1, 0});
  });
  expect_refused<Error>("tensor is an undefined tensor", [] { dist::all_reduce({}); });
  expect_refused<Error>("must be dense", [&] {
    dist::all_reduce(torch::ones({2, 2}).to_sparse());
  });
  expect_refused<Error>("tensor is on meta, the group has a backend for: c",
                        [&] { dist::all_reduce(torch::ones({2}, at::kMeta)); });
  expect_refused<Error>("is this rank itself", [&] { dist::send(x, r); });
  expect_refused<Error>("tag is -1", [&] { dist::isend(x, (r + 1) % 3, -1); });
  expect_refused<Error>("dst is global rank 0, which is not in the group", [&] {
    static const auto pair = dist::new_group({1, 2});
    if (r == 0) throw Error("dst is global rank 0, which is not in the group");
    dist::reduce(x, 0, dist::ReduceOp::SUM, {.group = pair});
  });
}

// The call sends nothing, so all ranks can reject it, and the group stays usable.
void overlapping_outputs(int r) {
  const auto x = torch::ones({3}), whole = torch::ones({9});
  const auto wide = torch::ones({1}).expand({3});
  const std::vector<at::Tensor> good{x, x, x}, bad{x, wide, x};
  const std::map<std::string, std::function<void()>> calls{
      {"broadcast", [&] { dist::broadcast(wide, 0); }},
      {"all_reduce", [&] { dist::all_reduce(wide); }},
      {"reduce", [&] { dist::reduce(wide, 0); }},
      {"all_gather", [&] { dist::all_gather(bad, x); }},
      {"all_gather_into_tensor",
       [&] { dist::all_gather_into_tensor(wide.slice(0, 0, 1).expand({9}), x); }},
      {"gather", [&] { dist::gather(x, bad, r); }},
      {"scatter", [&] { dist::scatter(wide, good, r); }},
      {"reduce_scatter", [&] { dist::reduce_scatter(wide, good); }},
      {"reduce_scatter_tensor", [&] { dist::reduce_scatter_tensor(wide, whole); }},
      {"all_to_all", [&] { dist::all_to_all(bad, good); }},
      {"all_to_all_single", [&] { dist::all_to_all_single(wide, x); }},
      {"recv", [&] { dist::recv(wide, (r + 1) % 3); }},
      {"irecv", [&] { dist::irecv(wide); }},
      {"batch_isend_irecv",
       [&] {
         dist::batch_isend_irecv({{dist::P2POp::Kind::Recv, wide, (r + 1) % 3}});
       }},
  };
  for (const auto& [name, call] : calls) {
    expect_refused<dist::DistArgumentError>("at one place in memory", call);
    expect_refused<dist::DistArgumentError>(name + " in group ", call);
  }
  auto cured = wide.contiguous();
  dist::all_reduce(cured);
  expect_equal(cured, torch::full({3}, 3), "the contiguous one");
  // Read-only inputs may overlap.
  auto all = torch::zeros({9});
  dist::all_gather_into_tensor(all, wide);
  expect_equal(all, whole, "all_gather of an expanded tensor");
}

void refused_operations() {
  using Error = dist::DistUnsupportedError;
  const auto x = torch::ones({2});
  expect_refused<Error>("Cannot use ReduceOp.BAND with non-integral dtype float32 on gloo",
                        [&] { dist::all_reduce(x, dist::ReduceOp::BAND); });
  expect_refused<Error>("Cannot use ReduceOp.PREMUL_SUM with gloo (dtype float32)",
                        [&] { dist::all_reduce(x, dist::ReduceOp::PREMUL_SUM); });
  expect_refused<Error>("Cannot use ReduceOp.AVG with integral dtype int64",
                        [&] { dist::all_reduce(x.to(at::kLong), dist::ReduceOp::AVG); });
}

std::string pattern(size_t size, int seed) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; i += 997) text[i] = static_cast<char>(i + static_cast<size_t>(seed));
  return text;
}

void big_objects(int r, size_t size) {
  const auto own_size = static_cast<size_t>(r) * size / 2;
  const auto all = dist::all_gather_object(pattern(own_size, r));
  for (size_t i = 0; i < all.size(); ++i) {
    expect(all[i] == pattern(i * size / 2, static_cast<int>(i)), "big all_gather_object");
  }
  expect(dist::gather_object(pattern(own_size, r), 1).size() == (r == 1 ? 3u : 0u), "gather size");
  std::vector<std::string> list{r == 2 ? pattern(size, 5) : "", r == 2 ? "x" : "y"};
  dist::broadcast_object_list(list, 2);
  expect(list == std::vector{pattern(size, 5), std::string("x")}, "big broadcast_object_list");
  if (r == 1) list = {pattern(size, 0), "", pattern(size / 3, 2)};
  const auto mine = dist::scatter_object_list(list, 1);
  expect(mine == (r == 0 ? pattern(size, 0) : r == 1 ? "" : pattern(size / 3, 2)), "big scatter");
}

}  // namespace

SDK_CASE(beyond_python) {
  return printing_errors([&] {
    const auto group = dist::init_process_group(options_of(args));
    const int r = dist::get_rank();
    wrong_arguments(r);
    overlapping_outputs(r);
    refused_operations();
    other_dtypes(r);
    views(r);
    unequal(r);
    expect(dist::all_gather_object(std::vector<int>()).size() == 3, "empty objects");
    std::vector<int> none;
    dist::broadcast_object_list(none, 0);
    const auto tensors = dist::all_gather_object(torch::full({r}, r));
    expect(at::equal(tensors[2], torch::tensor({2, 2})), "tensors as objects");
    dist::barrier();
    print_line("rank " + launched_rank() + " done");
  });
}

SDK_CASE(big_objects) {
  return printing_errors([&] {
    const auto group = dist::init_process_group(options_of(args));
    big_objects(dist::get_rank(), std::stoul(args[0]));
    print_line("rank " + launched_rank() + " done");
  });
}

// All calls with debug checks: matching calls must pass.
SDK_CASE(debug_agreement) {
  return printing_errors([&] {
    dist::set_debug_checks(true);
    const auto group = dist::init_process_group(options_of(args));
    views(dist::get_rank());
    unequal(dist::get_rank());
    exchanges(dist::get_rank());
    big_objects(dist::get_rank(), 100);
    dist::barrier();
    print_line("rank " + launched_rank() + " done");
  });
}

}  // namespace cpprun::test

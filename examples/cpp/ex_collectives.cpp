// Calls every collective once with small numbers, and shows what each backend supports.
//
//   cpprun --nproc_per_node=3 ./ex_collectives                    # all of them
//   cpprun --nproc_per_node=3 ./ex_collectives --only all_reduce
//   cpprun --nproc_per_node=3 ./ex_collectives --table            # reduce operations by type
//   cpprun --nproc_per_node=2 ./ex_collectives --only broadcast --mismatch               # fails
//   cpprun --nproc_per_node=2 ./ex_collectives --only monitored_barrier --skip-rank 1    # fails
#include <chrono>
#include <functional>
#include <iomanip>
#include <stdexcept>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/objects.hpp"
#include "cpprun/dist/process_group.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;
using dist::ReduceOp;
using examples::list;
using examples::print_line;

namespace {

struct Settings {
  std::string backend = "gloo", only = "all";
  bool shows_table = false, is_mismatched = false;
  int skip_rank = -1;
};

at::Tensor one(int64_t value) { return torch::tensor({value}); }
// A tensor for each rank, for a collective to fill.
std::vector<at::Tensor> tensors_to_fill() {
  std::vector<at::Tensor> outputs;
  for (int i = 0; i < dist::get_world_size(); ++i) outputs.push_back(one(-1));
  return outputs;
}
std::string list_all(const std::vector<at::Tensor>& tensors) { return list(torch::cat(tensors)); }
// Rank r's input for reductions: [r + 1, 6].
at::Tensor sample(at::ScalarType type) {
  return torch::tensor({dist::get_rank() + 1, 6}, torch::TensorOptions(type));
}

// Rank 0 sends to the last rank; tags keep messages apart.
void p2p(const Settings&) {
  const int rank = dist::get_rank(), last = dist::get_world_size() - 1;
  auto first = one(7), second = one(8);
  if (rank == 0) {
    dist::send(first, last, 5);
    dist::isend(second, last).wait();
  } else if (rank == last) {
    auto got = one(-1);
    dist::recv(got, 0, 5);
    print_line("recv ", got.item<int64_t>(), " tag 5");
    dist::irecv(got, 0).wait();
    print_line("irecv ", got.item<int64_t>());
  }
}

// All ranks get rank 1's tensor. With --mismatch the ranks pass different shapes, and the debug
// checks report an error that names both ranks.
void broadcast(const Settings& settings) {
  if (settings.is_mismatched) dist::set_debug_checks(true);
  const int rank = dist::get_rank();
  auto tensor = torch::full({settings.is_mismatched ? rank + 1 : 1}, rank);
  dist::broadcast(tensor, 1);
  print_line("broadcast src=1 rank", rank, " ", list(tensor));
}

void all_reduce(const Settings&) {
  auto tensor = sample(torch::kFloat);
  dist::all_reduce(tensor, ReduceOp::SUM);
  print_line("all_reduce SUM ", list(tensor));

  // The asynchronous form: do other work between the call and wait().
  auto later = sample(torch::kFloat);
  auto work = dist::all_reduce(later, ReduceOp::SUM, {.async_op = true});
  work.wait();
  if (!later.equal(tensor)) throw std::runtime_error("the asynchronous sum is " + list(later));
}

// Only rank `dst` has the result; the other ranks' tensors are undefined afterwards.
void reduce(const Settings&) {
  const int rank = dist::get_rank(), dst = dist::get_world_size() - 1;
  auto tensor = one(rank + 1);
  dist::reduce(tensor, dst);
  if (rank == dst) print_line("reduce dst=", dst, " rank", rank, " ", list(tensor));
}

void all_gather(const Settings&) {
  auto outputs = tensors_to_fill();
  dist::all_gather(outputs, one(dist::get_rank()));
  print_line("all_gather ", list_all(outputs));

  auto joined = torch::empty({dist::get_world_size()}, torch::kLong);
  dist::all_gather_into_tensor(joined, one(dist::get_rank()));
  print_line("all_gather_into_tensor ", list(joined));
}

void gather(const Settings&) {
  const bool is_first = dist::is_main_process();
  auto outputs = is_first ? tensors_to_fill() : std::vector<at::Tensor>{};
  dist::gather(one(10 * dist::get_rank()), outputs, 0);
  if (is_first) print_line("gather dst=0 ", list_all(outputs));
}

void scatter(const Settings&) {
  std::vector<at::Tensor> parts;
  for (int i = 0; dist::is_main_process() && i < dist::get_world_size(); ++i)
    parts.push_back(one(100 + i));
  auto mine = one(-1);
  dist::scatter(mine, parts, 0);
  print_line("scatter src=0 rank", dist::get_rank(), " ", list(mine));
}

// Rank r gets the sum of all ranks' parts[r].
void reduce_scatter(const Settings&) {
  std::vector<at::Tensor> parts;
  for (int i = 0; i < dist::get_world_size(); ++i) parts.push_back(one(10 * i));
  auto mine = one(-1);
  dist::reduce_scatter(mine, parts);
  print_line("reduce_scatter SUM rank", dist::get_rank(), " ", list(mine));
}

// Rank r sends 10 r + i to rank i.
void all_to_all(const Settings&) {
  std::vector<at::Tensor> parts;
  for (int i = 0; i < dist::get_world_size(); ++i) parts.push_back(one(10 * dist::get_rank() + i));
  auto outputs = tensors_to_fill();
  dist::all_to_all(outputs, parts);
  print_line("all_to_all rank", dist::get_rank(), " ", list_all(outputs));
}

// Objects can be strings, numbers, containers, tensors; ex_gather_objects shows more.
void objects(const Settings&) {
  const std::string name = "rank " + std::to_string(dist::get_rank());
  std::string line = "all_gather_object";
  for (const auto& each : dist::all_gather_object(name)) line += " " + each;
  print_line(line);

  std::vector<std::string> words{dist::is_main_process() ? "from 0" : ""};
  dist::broadcast_object_list(words, 0);
  print_line("broadcast_object_list ", words[0]);
}

void barrier(const Settings&) {
  dist::barrier();
  print_line("barrier passed by rank ", dist::get_rank());
}

// A barrier that names the missing ranks. The rank of --skip-rank does not call it, but stays alive
// until rank 0 has reported it.
void monitored_barrier(const Settings& settings) {
  const int rank = dist::get_rank();
  auto store = dist::default_group().store();
  if (rank == settings.skip_rank) {
    store.wait({"noticed"});
    return;
  }
  try {
    dist::monitored_barrier({}, std::chrono::seconds(2));
  } catch (const dist::DistError&) {
    if (rank == 0) store.set("noticed", "");
    throw;
  }
  print_line("monitored_barrier passed by rank ", rank);
}

// The result of one reduce operation, or the reason why it is not supported.
std::string outcome(ReduceOp op, at::ScalarType type) {
  auto tensor = sample(type);
  try {
    dist::all_reduce(tensor, op);
    return list(tensor);
  } catch (const dist::DistUnsupportedError& error) {
    return std::string("error: ") + error.what();
  }
}

void reduce_ops(const Settings&) {
  using enum ReduceOp;
  if (dist::is_main_process()) print_line("op | float32 | int32");
  for (ReduceOp op : {SUM, PRODUCT, MIN, MAX, BAND, BOR, BXOR, AVG, PREMUL_SUM}) {
    const auto floats = outcome(op, torch::kFloat), integers = outcome(op, torch::kInt);
    if (dist::is_main_process()) print_line(dist::name(op), " | ", floats, " | ", integers);
  }
}

// What the backend claims to support, and the result of each reduce operation.
void table(const Settings& settings) {
  const auto can = dist::capabilities(settings.backend);
  std::string calls;
  for (const auto& call : can.calls) calls += " " + call;
  if (dist::is_main_process()) print_line(settings.backend, " has", calls);
  reduce_ops(settings);
}

using Call = std::function<void(const Settings&)>;
const std::vector<std::pair<std::string, Call>> kCalls = {
    {"p2p", p2p},
    {"broadcast", broadcast},
    {"all_reduce", all_reduce},
    {"reduce", reduce},
    {"all_gather", all_gather},
    {"gather", gather},
    {"scatter", scatter},
    {"reduce_scatter", reduce_scatter},
    {"all_to_all", all_to_all},
    {"objects", objects},
    {"barrier", barrier},
    {"monitored_barrier", monitored_barrier},
    {"reduce_ops", reduce_ops},
};

void run(const Settings& settings) {
  bool is_known = false;
  for (const auto& [name, call] : kCalls) {
    if (settings.only != "all" && settings.only != name) continue;
    is_known = true;
    call(settings);
  }
  if (!is_known) throw std::invalid_argument("--only " + settings.only + ": no such collective");
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    Settings settings;
    std::string names = "all";
    for (const auto& [name, call] : kCalls) names += ", " + name;
    examples::Options("Calls every collective once, with small numbers.")
        .add("--backend", settings.backend, "gloo or nccl")
        .add("--only", settings.only, names)
        .add("--table", settings.shows_table,
             "print what the backend supports, by operation and type")
        .add("--mismatch", settings.is_mismatched, "broadcast different shapes")
        .add("--skip-rank", settings.skip_rank, "this rank does not call monitored_barrier")
        .parse(args);

    auto group = dist::init_process_group_or_single(
        {.backend = settings.backend, .timeout = std::chrono::seconds(20)});
    settings.shows_table ? table(settings) : run(settings);
  });
}

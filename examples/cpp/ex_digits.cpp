// Learns to read handwritten digits (examples/python/data/README.md) with any number of workers.
//
//   cpprun --standalone --nproc_per_node=2 --max_restarts=3 ./ex_digits
//   ./ex_digits          # alone
//
// Writes a snapshot after each training epoch. When restarted, by the launcher after a failure or
// by hand, training resumes from there and ends with exactly the parameters of an uninterrupted
// run. examples/python/digits_ddp.py does the same in Python, with a simpler net.
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cpprun/torch.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/faults.hpp"
#include "examples/cpp/support/hash.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;
using cpprun::data::DistributedSampler;
using cpprun::nn::parallel::DistributedDataParallel;

namespace {

constexpr int64_t kSide = 8, kPixels = kSide * kSide, kTestSize = 360, kGlobalBatch = 64;

struct Settings {
  int64_t epochs = 15;
  std::string snapshot = "digits.pt", data = CPPRUN_DIGITS;
  double sleep = 0;
};

template <class... Parts>
void report(const Parts&... parts) {
  examples::print_line("[rank ", dist::get_rank(), "] ", parts...);
}

struct Digits {
  at::Tensor images;  // n x 1 x 8 x 8, values 0 to 1
  at::Tensor labels;  // n
};

// The file has an image per line, compressed: 64 pixels of 0 to 16, then the digit.
at::Tensor read_rows(const std::string& path) {
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error("can't open " + path);
  std::vector<float> numbers;
  char line[1024];
  while (gzgets(file.get(), line, sizeof line) != nullptr) {
    char* at = line;
    for (int64_t i = 0; i <= kPixels; ++i) {
      char* end = at;
      numbers.push_back(std::strtof(at, &end));
      if (end == at) throw std::runtime_error(path + ": a line has no 65 numbers: " + line);
      at = *end == ',' ? end + 1 : end;
    }
  }
  if (gzeof(file.get()) == 0 || numbers.empty())
    throw std::runtime_error(path + " is broken or empty");
  return torch::tensor(numbers).view({-1, kPixels + 1});
}

// Returns training and test set; the split is the same in every process.
std::pair<Digits, Digits> load_digits(const std::string& path) {
  auto rows = read_rows(path);
  rows = rows.index_select(0, torch::randperm(rows.size(0), at::detail::createCPUGenerator(0)));
  const auto images = (rows.narrow(1, 0, kPixels) / 16).view({-1, 1, kSide, kSide});
  const auto labels = rows.select(1, kPixels).to(torch::kLong);
  return {{images.slice(0, kTestSize), labels.slice(0, kTestSize)},
          {images.slice(0, 0, kTestSize), labels.slice(0, 0, kTestSize)}};
}

struct Net : torch::nn::Module {
  at::Tensor forward(const at::Tensor& images) {
    auto x = torch::relu(first(images));
    x = torch::max_pool2d(torch::relu(second(x)), 2);
    return last(torch::relu(middle(x.flatten(1))));
  }
  torch::nn::Conv2d first{
      register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)))};
  torch::nn::Conv2d second{
      register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)))};
  torch::nn::Linear middle{register_module("middle", torch::nn::Linear(32 * 4 * 4, 64))};
  torch::nn::Linear last{register_module("last", torch::nn::Linear(64, 10))};
};

class Training {
 public:
  Training(const Settings& settings, const Digits& train)
      : settings_(settings), train_(train), sampler_(static_cast<size_t>(train.labels.numel())) {
    snapshot_.track(model_).track(optimizer_, model_).track(sampler_).track_rng();
    snapshot_.track("epochs_done", epochs_done_);
  }

  // Trains from the snapshot, if there is one, to the last training epoch.
  void run() {
    const cpprun::Resumed from = snapshot_.resume();
    step_ = from.step;
    if (from && dist::is_main_process())
      report("resuming from snapshot ", settings_.snapshot, ": ", epochs_done_, " of ",
             settings_.epochs, " training epochs are done");
    while (epochs_done_ < settings_.epochs) {
      const double loss = train_epoch(epochs_done_++);
      std::this_thread::sleep_for(std::chrono::duration<double>(settings_.sleep));
      const bool is_saved = snapshot_.save(step_);
      if (dist::is_main_process())
        report("training epoch ", epochs_done_, " of ", settings_.epochs, " done, loss ", loss,
               is_saved ? ", snapshot saved" : ", snapshot not saved");
    }
  }

  Net& net() { return model_.module(); }

 private:
  static std::shared_ptr<Net> make_net() {
    torch::manual_seed(0);
    return std::make_shared<Net>();
  }

  // Returns the mean loss over the steps of all ranks.
  double train_epoch(int64_t epoch) {
    cpprun::worker::fault_point(epoch);
    sampler_.set_epoch(epoch);
    const auto batch_size =
        static_cast<size_t>(std::max<int64_t>(kGlobalBatch / dist::get_world_size(), 1));
    auto loss_sum = torch::zeros(1);
    int64_t steps = 0;
    while (auto batch = sampler_.next(batch_size)) {
      const auto chosen = torch::tensor(std::vector<int64_t>(batch->begin(), batch->end()));
      optimizer_.zero_grad();
      auto loss = torch::cross_entropy_loss(model_(train_.images.index_select(0, chosen)),
                                            train_.labels.index_select(0, chosen));
      loss.backward();
      optimizer_.step();
      loss_sum += loss.detach();
      cpprun::worker::heartbeat(++step_);
      ++steps;
    }
    dist::all_reduce(loss_sum);
    return loss_sum.item<double>() / static_cast<double>(steps) / dist::get_world_size();
  }

  const Settings& settings_;
  const Digits& train_;
  DistributedSampler sampler_;
  DistributedDataParallel<Net> model_{make_net()};
  torch::optim::Adam optimizer_{model_.parameters(), torch::optim::AdamOptions(3e-3)};
  int64_t step_ = 0, epochs_done_ = 0;
  cpprun::Snapshot snapshot_{{.file = settings_.snapshot}};
};

// Each rank classifies every world-size-th image; all_reduce sums the counts.
int64_t count_right(Net& net, const Digits& test) {
  torch::NoGradGuard no_grad;
  const int rank = dist::get_rank(), world = dist::get_world_size();
  const auto images = test.images.slice(0, rank, kTestSize, world);
  const auto labels = test.labels.slice(0, rank, kTestSize, world);
  auto right = (net.forward(images).argmax(1) == labels).sum();
  dist::all_reduce(right);
  return right.item<int64_t>();
}

Settings parse(cpprun::Args args) {
  Settings s;
  examples::Options("Learns to read handwritten digits with any number of workers.")
      .add("--epochs", s.epochs, "training epochs")
      .add("--snapshot", s.snapshot, "snapshot file")
      .add("--data", s.data, "file with the images")
      .add("--sleep", s.sleep, "seconds added to each training epoch")
      .parse(args);
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    const Settings settings = parse(args);
    auto group = dist::init_process_group_or_single({.backend = "gloo"});
    report("started as process ", getpid(), ", one of ", dist::get_world_size());

    const auto [train, test] = load_digits(settings.data);
    Training training(settings, train);
    cpprun::worker::report_ready();
    training.run();

    const auto right = count_right(training.net(), test);
    if (!dist::is_main_process()) return;
    report("test accuracy ",
           std::to_string(100.0 * static_cast<double>(right) / kTestSize).substr(0, 4), " % (",
           right, " of ", kTestSize, " unseen digits read right)");
    report("parameters ", examples::hash_of(training.net()));
  });
}

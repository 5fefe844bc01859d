// Detects catheters and lines on chest X-rays: 11 labels per image, the pipeline of a real
// competition (RANZCR CLiP), with its data or with synthetic images.
//
//   cpprun --standalone --nproc_per_node=2 ./ex_ranzcr --data ranzcr-clip --epochs 5
//   cpprun --standalone --nproc_per_node=2 ./ex_ranzcr --synthetic 96 --image-size 32 --epochs 1
//   ./ex_ranzcr --solo --synthetic 96 --image-size 32        # the same code, alone
//
// Comments explain what a pipeline must do differently when it runs on several processes.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpprun/data/group_shuffle_split.hpp"
#include "cpprun/torch.hpp"
#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/faults.hpp"
#include "examples/cpp/ranzcr/auc.hpp"
#include "examples/cpp/ranzcr/residual_net.hpp"
#include "examples/cpp/ranzcr/studies.hpp"
#include "examples/cpp/support/hash.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

namespace dist = cpprun::dist;
using cpprun::nn::parallel::DistributedDataParallel;
using ranzcr::ResidualNet;

namespace {

struct Settings {
  std::string data, fine_tune, backend = "auto", write_data, predictions;
  std::string snapshot = "ranzcr.pt";
  int64_t synthetic = 0, batch_size = 64, epochs = 1, image_size = 224, seed = 1;
  int64_t log_interval = 5, loader_threads = 0;
  double lr = 0.003, weight_decay = 0, train_size = 0.8, sample_fraction = 1;
  bool only_evaluates = false, is_solo = false, saves_model = true;
  bool prints_hash = false;
};

Settings parse(cpprun::Args args) {
  Settings s;
  examples::Options("Detects catheters and lines on chest X-rays.")
      .add("--data", s.data, "folder with train.csv and train/<StudyInstanceUID>.jpg")
      .add("--synthetic", s.synthetic, "use this many synthetic images instead")
      .add("--batch-size,--batch_size", s.batch_size, "images per worker and step")
      .add("--epochs", s.epochs, "training epochs")
      .add("--lr", s.lr, "learning rate of Adam")
      .add("--weight-decay", s.weight_decay, "weight decay of Adam")
      .add("--train-size", s.train_size, "fraction of the patients to train on")
      .add("--image-size", s.image_size, "pixels per side to which images are scaled")
      .add("--sample-fraction", s.sample_fraction, "fraction of the patients to use at all")
      .add("--fine-tune", s.fine_tune, "start from this file, such as an earlier model.pt")
      .add("--seed", s.seed, "seed of the split, the order and the initial parameters")
      .add("--log-interval", s.log_interval, "steps between two progress lines")
      .add("--save-model,!--no-save-model", s.saves_model, "whether to write model.pt at the end")
      .add("--backend", s.backend, "gloo, nccl, or auto: nccl if there is a GPU")
      .add("--loader-threads", s.loader_threads, "threads that read images ahead")
      .add("--eval-only", s.only_evaluates, "do not train")
      .add("--snapshot", s.snapshot, "snapshot file, to resume an interrupted training")
      .add("--hash", s.prints_hash, "print a hash of the parameters at the end")
      .add("--predictions", s.predictions, "write the validation set's scores to this CSV file")
      .add("--solo", s.is_solo, "run as a single process, without the launcher's ranks")
      .add("--write-data", s.write_data, "write the --synthetic images to this folder, and exit")
      .parse(args);
  if (s.data.empty() == (s.synthetic == 0))
    throw std::invalid_argument("give either --data FOLDER or --synthetic N");
  return s;
}

dist::ProcessGroupGuard join(const Settings& settings) {
  if (!settings.is_solo) return dist::init_process_group_or_single({.backend = settings.backend});
  return dist::init_process_group(
      {.backend = settings.backend, .world_size = 1, .rank = 0, .store = dist::make_hash_store()});
}

struct SplitStudies {
  std::vector<ranzcr::Study> studies;
  cpprun::data::GroupShuffleSplit split;
};

// All images of a patient must be on the same side of the split, and all ranks must make the same
// split: they use the same seed and compare the results.
SplitStudies split_studies(const Settings& settings) {
  const auto seed = static_cast<uint64_t>(settings.seed);
  SplitStudies sides{settings.data.empty() ? ranzcr::make_synthetic(settings.synthetic, seed)
                                           : ranzcr::read_folder(settings.data),
                     {}};
  const auto patients = [&] {
    std::vector<std::string> all;
    for (const auto& study : sides.studies) all.push_back(study.patient);
    return all;
  };
  if (settings.sample_fraction < 1) {
    const auto kept =
        cpprun::data::group_shuffle_split(patients(), settings.sample_fraction, seed + 1);
    std::vector<ranzcr::Study> some;
    for (size_t index : kept.train) some.push_back(std::move(sides.studies[index]));
    sides.studies = std::move(some);
  }
  sides.split = cpprun::data::group_shuffle_split(patients(), settings.train_size, seed);
  const auto fingerprints = dist::all_gather_object(sides.split.fingerprint());
  for (size_t rank = 1; rank < fingerprints.size(); ++rank) {
    if (fingerprints[rank] != fingerprints[0])
      throw std::runtime_error("ranks 0 and " + std::to_string(rank) +
                               " split the data differently: they read different files");
  }
  return sides;
}

auto stacked(const ranzcr::XRays& images) {
  return ranzcr::XRays(images).map(torch::data::transforms::Stack<>());
}

torch::data::DataLoaderOptions loader_options(const Settings& settings) {
  return torch::data::DataLoaderOptions()
      .batch_size(static_cast<size_t>(settings.batch_size))
      .workers(static_cast<size_t>(settings.loader_threads));
}

// Undoes the order of UnpaddedDistributedSampler, which assigns sample i to rank i % world.
at::Tensor in_order(const std::vector<at::Tensor>& shares, int64_t size) {
  std::vector<at::Tensor> rows;
  const auto world = static_cast<int64_t>(shares.size());
  for (int64_t i = 0; i < size; ++i)
    rows.push_back(shares[static_cast<size_t>(i % world)][i / world]);
  return torch::stack(rows);
}

class Pipeline {
 public:
  Pipeline(const Settings& settings, const SplitStudies& sides)
      : settings_(settings),
        train_(sides.studies, sides.split.train, settings.image_size),
        validation_(sides.studies, sides.split.validation, settings.image_size),
        sampler_(sides.split.train.size(), {.seed = static_cast<uint64_t>(settings.seed)}),
        net_(make_net(settings)),
        model_(net_.ptr(), ddp_options()),
        optimizer_(model_.parameters(),
                   torch::optim::AdamOptions(settings.lr).weight_decay(settings.weight_decay)) {
    snapshot_.track(model_).track(optimizer_, model_).track(sampler_).track_rng();
    snapshot_.track("epochs_run", epochs_run_);
  }

  void run() {
    if (settings_.only_evaluates) return evaluate();
    const cpprun::Resumed from = snapshot_.resume();
    step_ = from.step;
    if (from && dist::is_main_process())
      examples::print_line("Resuming from ", settings_.snapshot, " at Epoch ", epochs_run_);
    while (epochs_run_ < settings_.epochs) {
      train(epochs_run_);
      evaluate();
      checkpoint(epochs_run_++);
      snapshot_.save(step_);
    }
    if (!dist::is_main_process()) return;
    if (settings_.saves_model) save("model.pt");
    if (settings_.prints_hash) examples::print_line("hash=", examples::hash_of(*net_));
  }

 private:
  static ResidualNet make_net(const Settings& settings) {
    torch::manual_seed(static_cast<uint64_t>(settings.seed));
    ResidualNet net(ranzcr::kLabels);
    if (!settings.fine_tune.empty()) cpprun::load_state_dict(*net, settings.fine_tune);
    net->to(dist::local_device());
    return net;
  }

  static cpprun::nn::parallel::DdpOptions ddp_options() {
    if (!dist::local_device().is_cuda()) return {};
    return {.device_ids = {dist::local_device().index()}};
  }

  void train(int64_t epoch) {
    cpprun::worker::fault_point(epoch);
    sampler_.set_epoch(epoch);  // without it, each training epoch repeats the order of the first
    model_.train();             // evaluate() has switched to evaluation mode
    auto loader =
        torch::data::make_data_loader(stacked(train_), sampler_, loader_options(settings_));
    const auto device = dist::local_device();
    auto totals = torch::zeros(2, torch::TensorOptions(torch::kDouble).device(device));
    int64_t steps = 0;
    for (auto& batch : *loader) {
      optimizer_.zero_grad();
      auto loss = torch::binary_cross_entropy_with_logits(model_(batch.data.to(device)),
                                                          batch.target.to(device));
      loss.backward();
      optimizer_.step();
      totals[0] += loss.detach();
      totals[1] += 1;
      cpprun::worker::heartbeat(++step_);
      if (++steps % settings_.log_interval == 0 && dist::is_main_process())
        examples::print_line("Epoch ", epoch, " step ", steps, " loss=", loss.item<double>());
    }
    dist::all_reduce(totals);  // to report the loss of all ranks' batches, not only rank 0's
    if (dist::is_main_process())
      examples::print_line("Epoch ", epoch, " steps=", steps,
                           " average loss=", (totals[0] / totals[1]).item<double>());
  }

  // Loss and AUC of the whole validation set: each rank scores its part, all ranks gather the
  // scores, and each sample counts once. The mean of the ranks' own AUCs would be a different
  // number.
  void evaluate() {
    torch::NoGradGuard no_grad;
    model_.eval();
    const auto size = static_cast<int64_t>(*validation_.size());
    cpprun::data::UnpaddedDistributedSampler sampler(static_cast<size_t>(size));
    auto loader =
        torch::data::make_data_loader(stacked(validation_), sampler, loader_options(settings_));
    std::vector<at::Tensor> parts{torch::empty({0, ranzcr::kLabels})};
    for (auto& batch : *loader)
      parts.push_back(net_->forward(batch.data.to(dist::local_device())).cpu());
    const auto shares = dist::all_gather_object(torch::cat(parts));
    if (size == 0) throw std::runtime_error("no patient is left to validate on: --train-size");
    const auto logits = in_order(shares, size).to(torch::kDouble);
    if (dist::is_main_process()) report(logits, validation_.labels().to(torch::kDouble));
  }

  void report(const at::Tensor& logits, const at::Tensor& labels) {
    const auto loss = torch::binary_cross_entropy_with_logits(logits, labels).item<double>();
    char line[96];
    std::snprintf(line, sizeof line, "Validation loss=%.4f AUC=%.4f", loss,
                  ranzcr::mean_auc(logits, labels));
    examples::print_line(line);
    if (!settings_.predictions.empty()) write_predictions(logits, labels);
  }

  // Rank 0 saves, all ranks load. The barriers: no rank reads the file too early, and none
  // overwrites or deletes it before all have read it. DDP keeps parameters equal anyway; the
  // pattern is for programs whose ranks differ.
  void checkpoint(int64_t epoch) {
    const auto path = "model.checkpoint_" + std::to_string(epoch) + ".pt";
    if (dist::is_main_process()) save(path);
    dist::barrier();
    cpprun::load_state_dict(*net_, path);  // to this rank's device
    dist::barrier();
  }

  void save(const std::string& path) { cpprun::save_state_dict(*net_, path); }

  void write_predictions(const at::Tensor& logits, const at::Tensor& labels);

  const Settings& settings_;
  ranzcr::XRays train_, validation_;
  cpprun::data::DistributedSampler sampler_;
  ResidualNet net_;
  DistributedDataParallel<ranzcr::ResidualNetImpl> model_;
  torch::optim::Adam optimizer_;
  int64_t step_ = 0, epochs_run_ = 0;
  cpprun::Snapshot snapshot_{{.file = settings_.snapshot}};
};

// A line per sample: 11 scores, then the 11 labels.
void Pipeline::write_predictions(const at::Tensor& logits, const at::Tensor& labels) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(settings_.predictions.c_str(), "w"), std::fclose);
  if (!file) throw std::runtime_error("can't write " + settings_.predictions);
  const auto rows = torch::cat({logits, labels}, 1).contiguous();
  for (int64_t i = 0; i < rows.size(0); ++i) {
    for (int64_t j = 0; j < rows.size(1); ++j)
      std::fprintf(file.get(), "%s%.17g", j == 0 ? "" : ",", rows[i][j].item<double>());
    std::fputc('\n', file.get());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return cpprun::main(argc, argv, [](cpprun::Args args) {
    const Settings settings = parse(args);
    if (!settings.write_data.empty()) {
      const auto studies =
          ranzcr::make_synthetic(settings.synthetic, static_cast<uint64_t>(settings.seed));
      return ranzcr::write_folder(settings.write_data, studies, settings.image_size);
    }
    auto group = join(settings);
    Pipeline pipeline(settings, split_studies(settings));
    cpprun::worker::report_ready();
    pipeline.run();
  });
}

#include "examples/cpp/ranzcr/studies.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <sstream>
#include <stdexcept>

#include <torch/torch.h>

#include "examples/cpp/ranzcr/image_file.hpp"

namespace ranzcr {
namespace {

namespace fs = std::filesystem;

// The file has no quoted fields.
std::vector<std::string> fields(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> all;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) all.push_back(field);
  return all;
}

float label(const std::string& word, const std::string& place) {
  if (word == "0" || word == "1") return word == "1" ? 1.0F : 0.0F;
  throw std::runtime_error(place + ": the label '" + word + "' is neither 0 nor 1");
}

Study parse_row(const std::vector<std::string>& names, const std::string& line,
                const std::string& place) {
  const auto words = fields(line);
  if (words.size() != names.size())
    throw std::runtime_error(place + " has " + std::to_string(words.size()) + " fields, not " +
                             std::to_string(names.size()));
  Study study;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "StudyInstanceUID") {
      study.id = words[i];
    } else if (names[i] == "PatientID") {
      study.patient = words[i];
    } else {
      study.labels.push_back(label(words[i], place));
    }
  }
  return study;
}

std::string image_of(const fs::path& folder, const std::string& id) {
  const auto jpeg = folder / "train" / (id + ".jpg"), png = folder / "train" / (id + ".png");
  if (fs::exists(jpeg)) return jpeg;
  if (fs::exists(png)) return png;
  throw std::runtime_error("image " + jpeg.string() + ": missing (and no .png instead)");
}

uint64_t seed_of(const std::string& id) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char letter : id) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

// Draws a line for each label; its angle depends on the label, its position is random.
at::Tensor draw(const Study& study, int64_t side) {
  auto random = at::detail::createCPUGenerator(seed_of(study.id));
  auto image = 60 + 20 * torch::randn({side, side}, random);
  const auto across = torch::linspace(-1, 1, side).view({1, side});
  const auto down = torch::linspace(-1, 1, side).view({side, 1});
  const auto shifts = 0.6 * torch::rand({kLabels}, random) - 0.3;
  for (int64_t i = 0; i < kLabels; ++i) {
    if (study.labels[static_cast<size_t>(i)] == 0) continue;
    const double angle = std::numbers::pi * static_cast<double>(i) / kLabels;
    const auto distance = across * std::cos(angle) + down * std::sin(angle) - shifts[i];
    image += 120 * torch::exp(-(distance * 12).square());
  }
  return image.clamp(0, 255).to(torch::kUInt8);
}

at::Tensor resized(const at::Tensor& image, int64_t side) {
  const auto batch = image.to(torch::kFloat).view({1, 1, image.size(0), image.size(1)});
  const auto options = torch::nn::functional::InterpolateFuncOptions()
                           .size(std::vector<int64_t>{side, side})
                           .mode(torch::kBilinear)
                           .align_corners(false)
                           .antialias(true);
  return torch::nn::functional::interpolate(batch, options).squeeze(0);
}

}  // namespace

std::vector<Study> read_folder(const std::string& folder) {
  const auto path = (fs::path(folder) / "train.csv").string();
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error(path + ": missing or empty");
  const auto names = fields(line);
  if (names.size() != kLabels + 2)
    throw std::runtime_error(path + ": the head has " + std::to_string(names.size()) +
                             " names, not StudyInstanceUID, 11 labels and PatientID");
  std::vector<Study> studies;
  for (int number = 2; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    studies.push_back(parse_row(names, line, path + ":" + std::to_string(number)));
    if (studies.back().labels.size() != kLabels || studies.back().id.empty())
      throw std::runtime_error(path + ": the head lacks StudyInstanceUID or PatientID");
    studies.back().path = image_of(folder, studies.back().id);
  }
  return studies;
}

std::vector<Study> make_synthetic(int64_t count, uint64_t seed) {
  auto random = at::detail::createCPUGenerator(seed);
  const auto labels = (torch::rand({count, kLabels}, random) < 0.3).to(torch::kFloat).contiguous();
  const auto patients = torch::randint(0, count / 3 + 1, {count}, random, torch::kLong);
  std::vector<Study> studies;
  for (int64_t i = 0; i < count; ++i) {
    const float* row = labels[i].data_ptr<float>();
    studies.push_back({"made-up-" + std::to_string(seed) + "-" + std::to_string(i),
                       "patient-" + std::to_string(patients[i].item<int64_t>()),
                       {row, row + kLabels},
                       ""});
  }
  return studies;
}

void write_folder(const std::string& folder, const std::vector<Study>& studies, int64_t side) {
  fs::create_directories(fs::path(folder) / "train");
  std::ofstream file(fs::path(folder) / "train.csv");
  file << "StudyInstanceUID";
  for (int64_t i = 0; i < kLabels; ++i) file << ",Label " << i;
  file << ",PatientID\n";
  for (const auto& study : studies) {
    file << study.id;
    for (float value : study.labels) file << ',' << value;
    file << ',' << study.patient << '\n';
    write_jpeg((fs::path(folder) / "train" / (study.id + ".jpg")).string(), draw(study, side));
  }
  if (!file.flush()) throw std::runtime_error(folder + "/train.csv can't be written");
}

XRays::XRays(const std::vector<Study>& all, const std::vector<size_t>& chosen, int64_t side)
    : side_(side) {
  for (size_t index : chosen) studies_.push_back(all.at(index));
}

torch::data::Example<> XRays::get(size_t index) {
  const auto& study = studies_.at(index);
  const auto image = study.path.empty() ? draw(study, side_) : read_image(study.path);
  return {(resized(image, side_) - 90) / 60, torch::tensor(study.labels)};
}

at::Tensor XRays::labels() const {
  std::vector<at::Tensor> rows;
  for (const auto& study : studies_) rows.push_back(torch::tensor(study.labels));
  return rows.empty() ? torch::empty({0, kLabels}) : torch::stack(rows);
}

}  // namespace ranzcr

// The competition's data: chest X-rays with 11 labels each, some of the same patient.
//
// In a folder as Kaggle ships it (train.csv and train/<StudyInstanceUID>.jpg; .png will do), or
// made up: grey noise, and a bright line for each label that is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>

namespace ranzcr {

inline constexpr int64_t kLabels = 11;

struct Study {
  std::string id;       // StudyInstanceUID
  std::string patient;  // PatientID
  std::vector<float> labels;
  std::string path;  // of the image; empty: made up
};

// Throws std::runtime_error that names the file and line, or the image that is missing.
std::vector<Study> read_folder(const std::string& folder);
// `count` made-up studies, the same for the same seed, on every machine.
std::vector<Study> make_up(int64_t count, uint64_t seed);
// Writes made-up studies as a folder that read_folder reads.
void write_folder(const std::string& folder, const std::vector<Study>& studies, int64_t side);

// Some of the studies as a data set: image (1 x side x side, about -2 to 2) and labels (11).
// Images are read when they are asked for, from any thread.
class XRays : public torch::data::datasets::Dataset<XRays> {
 public:
  XRays(const std::vector<Study>& all, const std::vector<size_t>& chosen, int64_t side);
  torch::data::Example<> get(size_t index) override;
  std::optional<size_t> size() const override { return studies_.size(); }
  at::Tensor labels() const;  // of all, n x 11

 private:
  std::vector<Study> studies_;
  int64_t side_;
};

}  // namespace ranzcr

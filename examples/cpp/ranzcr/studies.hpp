// The competition's data: chest X-rays with 11 labels each; a patient may have several.
//
// Read from a folder in Kaggle's layout (train.csv and train/<StudyInstanceUID>.jpg or .png), or
// synthetic: grey noise with a bright line for each label of the study.
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
  std::string path;  // of the image; empty: synthetic
};

// Throws std::runtime_error with the file and line, or with the missing image.
std::vector<Study> read_folder(const std::string& folder);
// `count` synthetic studies, which depend only on the seed.
std::vector<Study> make_synthetic(int64_t count, uint64_t seed);
// Writes synthetic studies as a folder that read_folder reads.
void write_folder(const std::string& folder, const std::vector<Study>& studies, int64_t side);

// Some of the studies as a data set: image (1 x side x side, about -2 to 2) and labels (11). get()
// reads the image from disk; thread-safe.
class XRays : public torch::data::datasets::Dataset<XRays> {
 public:
  XRays(const std::vector<Study>& all, const std::vector<size_t>& chosen, int64_t side);
  torch::data::Example<> get(size_t index) override;
  std::optional<size_t> size() const override { return studies_.size(); }
  at::Tensor labels() const;  // of all samples, n x 11

 private:
  std::vector<Study> studies_;
  int64_t side_;
};

}  // namespace ranzcr

// ReportPage: one HTML file without links to others, of titled sections of plain text; and which
// parts of command lines and environments may go into it. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun::ctl {

class ReportPage {
 public:
  explicit ReportPage(std::string title) : title_(std::move(title)) {}

  // Empty texts make no section. A long text keeps its end, `most` bytes.
  void add(const std::string& heading, std::string_view text, size_t most);
  // At most limits::kReportBytes; sections that do not fit are named, but left out.
  std::string html() const;

 private:
  struct Section {
    std::string heading;
    std::string text;
  };
  std::string title_;
  std::vector<Section> sections_;
};

// The words as one line. Values whose name speaks of a secret are replaced: --api-key=x, --token x,
// PASSWORD=x.
std::string masked_command(const std::vector<std::string>& words);

// The variables that show how a job was set up (PET_, CPPRUN_, NCCL_, CUDA_ and the like), one per
// line, sorted; without those whose name suggests a secret.
std::string shown_variables(const std::vector<std::string>& variables);

}  // namespace cpprun::ctl

#include "launcher/ctl/doctor.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "launcher/ctl/output.hpp"
#include "launcher/doctor/judge.hpp"
#include "launcher/doctor/probe.hpp"

namespace cpprun {
namespace {

constexpr uint16_t kDefaultPort = 29400;  // as torchrun's c10d

std::string column(std::string_view text, size_t width) {
  std::string padded(text);
  padded.resize(std::max(width, padded.size()), ' ');
  return padded + "  ";
}

std::string line_of(const doctor::Finding& finding) {
  const std::string start = column(doctor::name(finding.level), 7) + column(finding.check, 9);
  std::string lines = start + finding.text + "\n";
  if (!finding.cure.empty())
    lines += std::string(start.size(), ' ') + "cure: " + finding.cure + "\n";
  return lines;
}

std::string json_of(const std::vector<doctor::Finding>& findings) {
  nlohmann::json all = nlohmann::json::array();
  for (const doctor::Finding& finding : findings) {
    all.push_back({{"check", finding.check},
                   {"level", doctor::name(finding.level)},
                   {"text", finding.text},
                   {"cure", finding.cure}});
  }
  // Names of hosts and files may be anything.
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<bool> run_doctor(const DoctorOptions& options) {
  doctor::Question question;
  question.nproc = options.nproc;
  if (!options.endpoint.empty()) {
    const Result<Endpoint> endpoint = parse_endpoint(options.endpoint, kDefaultPort);
    if (!endpoint) return endpoint.error();
    question.endpoint = *endpoint;
  }
  if (!options.snapshot_dir.empty()) question.snapshot_dir = options.snapshot_dir;
  const std::vector<doctor::Finding> findings = doctor::judge(doctor::probe(question));
  if (options.is_json) {
    ctl::print(json_of(findings));
  } else {
    for (const doctor::Finding& finding : findings) ctl::print(line_of(finding));
  }
  return std::none_of(findings.begin(), findings.end(), [](const doctor::Finding& finding) {
    return finding.level == doctor::Level::Problem;
  });
}

}  // namespace cpprun

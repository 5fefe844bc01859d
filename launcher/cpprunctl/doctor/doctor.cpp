#include "launcher/cpprunctl/doctor/doctor.hpp"

#include <algorithm>
#include <vector>

#include "launcher/cpprunctl/doctor/doctor_protocol.hpp"
#include "launcher/cpprunctl/text/output.hpp"
#include "launcher/doctor/checks.hpp"
#include "launcher/doctor/probe.hpp"

namespace cpprun {
Result<bool> run_doctor(const DoctorOptions& options) {
  doctor::ProbeRequest question;
  question.nproc = options.nproc;
  if (!options.endpoint.empty()) {
    const Result<Endpoint> endpoint = parse_endpoint(options.endpoint, kRendezvousPort);
    if (!endpoint) return endpoint.error();
    question.endpoint = *endpoint;
  }
  if (options.nodes.count > 0) {
    if (question.endpoint)
      return ctl::run_doctors(*question.endpoint, options.nodes, options.is_json);
    return Error{ErrorKind::Usage, "--nnodes needs --endpoint HOST:PORT, where the nodes meet"};
  }
  if (!options.snapshot_dir.empty()) question.snapshot_dir = options.snapshot_dir;
  const std::vector<doctor::Finding> findings = doctor::run_checks(doctor::probe(question));
  ctl::print(options.is_json ? ctl::json_of(findings) : ctl::text_of(findings));
  return std::none_of(findings.begin(), findings.end(), [](const doctor::Finding& finding) {
    return finding.level == doctor::Level::Problem;
  });
}

}  // namespace cpprun

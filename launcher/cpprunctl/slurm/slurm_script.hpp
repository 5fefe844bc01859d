// `cpprunctl slurm script`: the shipped batch file (packaging/slurm/cpprun.sbatch) with the values
// of one job. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

struct SlurmScriptOptions {
  // sbatch's own options, such as {"nodes", "4"}; an empty value: not given.
  std::vector<std::pair<std::string, std::string>> sbatch;
  std::vector<std::string> program;  // the script and its arguments; empty: those of sbatch's call
};

// packaging/slurm/cpprun.sbatch, embedded at build time.
std::string_view slurm_batch_file();

// A line "#SBATCH --NAME=VALUE" per value, in place of the file's own for that name. An error: a
// value with a blank or a control character, which sbatch would read as something else.
Result<std::string> slurm_script(const SlurmScriptOptions& options);

}  // namespace cpprun

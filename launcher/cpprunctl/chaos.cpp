#include "launcher/cpprunctl/chaos.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "common/exit_code.hpp"
#include "common/faults/fault_report_text.hpp"
#include "common/faults/plan.hpp"
#include "common/faults/statistics.hpp"
#include "common/machine/end_signals.hpp"
#include "common/machine/files.hpp"
#include "common/machine/reap.hpp"
#include "common/machine/start_program.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"
#include "snapshot_files/archive/bytes.hpp"
#include "snapshot_files/archive/crc32.hpp"

namespace cpprun {
namespace {

constexpr const char* kFaultFree = "fault-free";  // replaces the seed in the reference run

std::string with_seed(std::string text, const std::string& seed) {
  for (size_t at = 0; (at = text.find("{seed}", at)) != std::string::npos; at += seed.size()) {
    text.replace(at, 6, seed);
  }
  return text;
}

// A campaign's temporary folder; the destructor removes it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::string name = (std::filesystem::temp_directory_path() / "cpprun-chaos-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return system_error("a folder " + name, errno);
    return TemporaryFolder(name);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Run {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> variables;
};

// Runs cpprun, and passes signals on to it that would end this process: nothing runs on when
// cpprunctl has ended.
class Runner {
 public:
  static Result<Runner> make() {
    Result<UniqueFd> signals = open_end_signals();
    if (!signals) return signals.error();
    return Runner(std::move(*signals));
  }

  // The first signal that this process has got; 0: none.
  int signal() const { return signal_; }

  // Its wait status; 0 without a start if there was a signal before.
  Result<int> run(const Run& run) {
    take_signals(std::nullopt);
    if (signal_ != 0) return 0;
    for (const auto& [name, value] : run.variables) ::setenv(name.c_str(), value.c_str(), 1);
    const Result<pid_t> cpprun = start_program(run.arguments);
    if (!cpprun) return cpprun.error();
    const UniqueFd end(static_cast<int>(::syscall(SYS_pidfd_open, *cpprun, 0)));
    pollfd watched[] = {{end.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    while (end.is_open() && watched[0].revents == 0) {
      if (::poll(watched, 2, -1) > 0 && watched[1].revents != 0) take_signals(*cpprun);
    }
    return reap(*cpprun);
  }

 private:
  explicit Runner(UniqueFd signals) : signals_(std::move(signals)) {}

  // `cpprun`: gets them too, but for those of the terminal's keys, which it has got from the
  // kernel.
  void take_signals(std::optional<pid_t> cpprun) {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (signal_ == 0) signal_ = number;
      if (cpprun && info.ssi_code != SI_KERNEL) ::kill(*cpprun, number);
    }
  }

  UniqueFd signals_;
  int signal_ = 0;
};

// `own` are the options that this seed adds; they come right after the launcher's name.
Run run_of(const ChaosOptions& options, const std::string& seed,
           const std::vector<std::string>& own) {
  Run run{{options.command[0]}, {{"CPPRUN_CHAOS_SEED", seed}, {"CPPRUN_FAULTS", ""}}};
  run.arguments.insert(run.arguments.end(), own.begin(), own.end());
  for (size_t i = 1; i < options.command.size(); ++i) {
    run.arguments.push_back(with_seed(options.command[i], seed));
  }
  return run;
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

class Campaign {
 public:
  Campaign(const ChaosOptions& options, faults::Plan plan, TemporaryFolder folder, Runner runner)
      : options_(options),
        plan_(std::move(plan)),
        folder_(std::move(folder)),
        runner_(std::move(runner)) {}

  Result<ChaosResult> run() {
    const Status hash = find_hash();
    if (runner_.signal() != 0) return ChaosResult{false, runner_.signal()};
    if (!hash) return hash.error();
    for (int64_t seed = options_.first; seed < options_.first + options_.seeds; ++seed) {
      Result<int> signal = run_seed(std::to_string(seed));
      if (!signal) return signal.error();
      if (*signal != 0) return ChaosResult{false, *signal};
    }
    print(statistics_.table());
    print(std::to_string(options_.seeds - failed_) + " of " +
          text::count(static_cast<size_t>(options_.seeds), "seed") + " held\n");
    return ChaosResult{failed_ == 0};
  }

 private:
  Status find_hash() {
    auto& expect = plan_.expect;
    if (!expect || !expect->final_hash || !expect->final_hash->is.empty()) return {};
    Result<std::string> hash = fault_free_hash(expect->final_hash->file);
    if (!hash) return hash.error();
    expect->final_hash->is = *hash;
    print("without faults: final hash " + *hash + "\n");
    return {};
  }

  // The crc32 that the final file has after a run without faults.
  Result<std::string> fault_free_hash(const std::string& file) {
    const Result<int> status = runner_.run(run_of(options_, kFaultFree, {}));
    if (!status) return status.error();
    const std::optional<std::string> bytes = read_file(with_seed(file, kFaultFree));
    if (*status == 0 && bytes) {
      return archive::crc32_text(archive::crc32(archive::bytes_of(*bytes)));
    }
    return Error{ErrorKind::BadValue,
                 "the run without faults " +
                     std::string(*status == 0 ? "left no '" + file + "'" : "failed") +
                     "; it must end well before faults can be judged"};
  }

  Status write_plan(const std::string& seed) const {
    faults::Plan plan = plan_;
    if (plan.expect && plan.expect->final_hash) {
      plan.expect->final_hash->file = with_seed(plan.expect->final_hash->file, seed);
    }
    if (!plan.expect) plan.expect.emplace();  // expect at least success
    const std::string file = folder_.file("plan.json");
    return write_file(file, faults::encode(plan)) ? Status{} : system_error(file, errno);
  }

  // Runs one seed. Returns the signal that interrupted the campaign; 0: none.
  Result<int> run_seed(const std::string& seed) {
    if (Status ok = write_plan(seed); !ok) return ok.error();
    const std::string report = folder_.file("account.json");
    std::error_code ignored;
    std::filesystem::remove(report, ignored);
    Run run = run_of(options_, seed, {"--faults=" + folder_.file("plan.json"), "--seed=" + seed});
    run.variables["CPPRUN_FAULT_ACCOUNT"] = report;
    const Result<int> status = runner_.run(run);
    if (!status) return status.error();
    if (runner_.signal() != 0) return runner_.signal();
    const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 0;
    if (code == kSignalBase + SIGINT || code == kSignalBase + SIGTERM) return code - kSignalBase;
    take(seed, read_file(report));
    return 0;
  }

  void take(const std::string& seed, const std::optional<std::string>& report) {
    std::vector<std::string> failed{"cpprun left no account: it was killed, or could not start"};
    const Result<faults::Summary> summary = faults::parse_summary(report.value_or(""));
    if (summary) {
      statistics_.add(*summary);
      failed = summary->failed;
    }
    const bool is_held = summary && summary->is_held;
    if (!is_held) ++failed_;
    print("seed " + seed +
          (is_held ? ": held\n"
                   : ": NOT HELD (" + text::join(failed, "; ") + "); again: --first " + seed +
                         " --seeds 1\n"));
  }

  const ChaosOptions& options_;
  faults::Plan plan_;
  const TemporaryFolder folder_;
  Runner runner_;
  faults::Statistics statistics_;
  int64_t failed_ = 0;
};

}  // namespace

Result<ChaosResult> chaos(const ChaosOptions& options) {
  const std::optional<std::string> text = read_file(options.plan);
  if (!text) {
    return Error{ErrorKind::BadValue, "the fault plan '" + options.plan + "' can't be read"};
  }
  Result<faults::Plan> plan = faults::parse_plan(*text, options.plan);
  if (!plan) return plan.error();
  Result<TemporaryFolder> folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  Result<Runner> runner = Runner::make();
  if (!runner) return runner.error();
  return Campaign(options, std::move(*plan), std::move(*folder), std::move(*runner)).run();
}

}  // namespace cpprun

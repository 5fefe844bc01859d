#include "cpprun/worker/environment.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>

#include "common/text.hpp"

namespace cpprun::worker {
namespace {

constexpr int64_t kIntMax = std::numeric_limits<int>::max();
constexpr int64_t kPortMax = 65'535;

Error missing(const char* name, const char* other) {
  return {ErrorKind::BadValue, std::string(name) + " is not set, but " + other +
                                   " is; start the program with cpprun or torchrun, or give rank "
                                   "and world_size"};
}

// Reads variables one by one, keeps the first error and ignores what follows it.
class Reader {
 public:
  explicit Reader(const Lookup& lookup) : lookup_(lookup) {}

  bool has(const char* name) const { return lookup_(name).has_value(); }
  std::string text(const char* name) const { return lookup_(name).value_or(""); }

  template <class Number>
  void number(const char* name, Number& into, int64_t from, int64_t to) {
    const std::optional<std::string> given = lookup_(name);
    if (!given || error_) return;
    const std::optional<int64_t> value = text::parse_int(*given);
    if (value && *value >= from && *value <= to) {
      into = static_cast<Number>(*value);
    } else {
      error_ = Error{ErrorKind::BadValue, std::string(name) + " is '" + *given +
                                              "', but must be a whole number from " +
                                              std::to_string(from) + " to " + std::to_string(to)};
    }
  }

  // Reads a rank and its world size: the size is at least 1, the rank below it.
  void rank_and_size(const char* rank_name, int& rank, const char* size_name, int& size) {
    number(size_name, size, 1, kIntMax);
    number(rank_name, rank, 0, kIntMax);
    if (error_ || rank < size) return;
    error_ = Error{ErrorKind::BadValue, std::string(rank_name) + " is " + std::to_string(rank) +
                                            ", but must be below " + size_name + ", which is " +
                                            std::to_string(size)};
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  const Lookup& lookup_;
  std::optional<Error> error_;
};

void read_ranks(Reader& reader, Environment& to) {
  reader.rank_and_size("RANK", to.rank, "WORLD_SIZE", to.world_size);
  reader.rank_and_size("LOCAL_RANK", to.local_rank, "LOCAL_WORLD_SIZE", to.local_world_size);
  reader.rank_and_size("GROUP_RANK", to.group_rank, "GROUP_WORLD_SIZE", to.group_world_size);
  // Workers that were started by hand have no ROLE_... variables: all workers then share one role.
  to.role_rank = to.rank;
  to.role_world_size = to.world_size;
  reader.rank_and_size("ROLE_RANK", to.role_rank, "ROLE_WORLD_SIZE", to.role_world_size);
}

void read_numbers(Reader& reader, Environment& to) {
  reader.number("MASTER_PORT", to.master_port, 0, kPortMax);
  reader.number("TORCHELASTIC_RESTART_COUNT", to.restart_count, 0, kIntMax);
  reader.number("TORCHELASTIC_MAX_RESTARTS", to.max_restarts, 0, kIntMax);
  reader.number("CPPRUN_ROUND", to.round, 0, std::numeric_limits<int64_t>::max());
}

void read_texts(const Reader& reader, Environment& to) {
  to.role = reader.text("ROLE_NAME");
  to.master_addr = reader.text("MASTER_ADDR");
  to.run_id = reader.text("TORCHELASTIC_RUN_ID");
  to.use_agent_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  to.error_file = reader.text("TORCHELASTIC_ERROR_FILE");
  to.store = reader.text("CPPRUN_STORE");
  to.agent = reader.text("CPPRUN_AGENT");
  to.resume_from = reader.text("CPPRUN_RESUME_FROM");
  to.snapshot_dir = reader.text("CPPRUN_SNAPSHOT_DIR");
  to.faults = reader.text("CPPRUN_FAULTS");
}

// The variables of one round. This object is never destroyed, because other threads may hold a
// reference to it. It points to that of the round before, so that leak checkers find them all.
struct RoundEnvironment {
  Result<Environment> environment;
  const RoundEnvironment* previous;
};

const RoundEnvironment* read_environment(const RoundEnvironment* previous) {
  return new RoundEnvironment{parse_environment(own_variable), previous};
}

std::atomic<const RoundEnvironment*>& newest_environment() {
  static std::atomic<const RoundEnvironment*> newest{read_environment(nullptr)};
  return newest;
}

}  // namespace

std::optional<std::string> own_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<Environment> parse_environment(const Lookup& lookup) {
  Reader reader(lookup);
  if (reader.has("RANK") != reader.has("WORLD_SIZE")) {
    return reader.has("RANK") ? missing("WORLD_SIZE", "RANK") : missing("RANK", "WORLD_SIZE");
  }
  Environment result;
  result.is_launched = reader.has("RANK");
  read_ranks(reader, result);
  read_numbers(reader, result);
  read_texts(reader, result);
  if (reader.error()) return *reader.error();
  return result;
}

const Result<Environment>& environment() { return newest_environment().load()->environment; }

void read_environment_again() {
  std::atomic<const RoundEnvironment*>& newest = newest_environment();
  newest.store(read_environment(newest.load()));
}

const Environment& environment_or_default() {
  static const Environment world_of_one;
  const Result<Environment>& own = environment();
  return own ? *own : world_of_one;
}

}  // namespace cpprun::worker

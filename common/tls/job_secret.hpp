// JobSecret: the secret that the agents of a job share. Its bytes lie in memory that is not swapped
// out, is in no core dump and in no forked process, where the kernel can do that; they are
// overwritten at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace cpprun {

class JobSecret {
 public:
  // A copy of `text`.
  static Result<std::shared_ptr<const JobSecret>> copy_of(std::string_view text);
  // The content of a file, without the newline at its end. As ssh does with private keys, it
  // refuses a file of this user that others can read; files of other users, such as a secret that
  // Kubernetes mounts, are theirs to protect.
  static Result<std::shared_ptr<const JobSecret>> read(const std::string& path);
  ~JobSecret();
  JobSecret(const JobSecret&) = delete;

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  // Error: too short or too long; `what` names the source.
  Status check(const std::string& what) const;

 private:
  JobSecret(uint8_t* data, size_t capacity) : data_(data), capacity_(capacity) {}
  // Room for `size` bytes; not null.
  static Result<std::shared_ptr<JobSecret>> reserve(size_t size);

  uint8_t* data_;
  size_t capacity_;
  size_t size_ = 0;
};

inline constexpr const char* kSecretVariable = "CPPRUN_SECRET";
inline constexpr const char* kSecretFileVariable = "CPPRUN_SECRET_FILE";

// Takes the variable CPPRUN_SECRET out of this process's environment and overwrites it there, so
// that no child inherits it and /proc does not show it. Null: unset or empty. Call it before there
// are threads.
Result<std::shared_ptr<const JobSecret>> take_secret_variable();

// The secret that a user gave: of `file`, else of the file that CPPRUN_SECRET_FILE names
// (`variable_file`), else `variable`. Null: none. `read` is JobSecret::read() or stands in for it.
// Errors name the source and the remedy.
using ReadSecret = std::function<Result<std::shared_ptr<const JobSecret>>(const std::string& path)>;
Result<std::shared_ptr<const JobSecret>> choose_secret(
    const std::string& file, const std::string& variable_file,
    const std::shared_ptr<const JobSecret>& variable, const ReadSecret& read = JobSecret::read);

}  // namespace cpprun

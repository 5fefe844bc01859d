// Whole files, the names in folders, and the output of a pipe as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

// At most `most` bytes of it; nothing if it cannot be read. Calls the kernel directly, without
// streams: each start of a job reads several files of /proc and /sys.
std::optional<std::string> read_file(const std::string& path, size_t most = SIZE_MAX);
// Appends what a pipe delivers until its end, or until `text` has `most` bytes. False: neither came
// before `until`.
bool read_until(int fd, Instant until, size_t most, std::string& text);
// Writes all of the text to a file or memfd.
Status write_all(int fd, std::string_view text);
// Replaces its content. False: it could not be written.
bool write_file(const std::string& path, const std::string& text);

// Without "." and "..", independent of the working directory. Unchanged if empty, or if there is no
// working directory. Looks at no file.
std::string absolute_path(const std::string& path);

// The names in a folder, in no order; none if it cannot be read.
std::vector<std::string> list_folder(const std::string& path);
// The names of NVIDIA's device files in a folder such as /dev, one per GPU, sorted: "nvidia0", but
// not "nvidiactl".
std::vector<std::string> list_gpu_files(const std::string& folder);

}  // namespace cpprun

// A worker's output on its way to the console: splits 64 KiB into lines.
#include <memory>
#include <string>

#include "agent/process/streams/line_splitter.hpp"
#include "bench/parts/parts.hpp"

namespace cpprun::bench {

BENCH_PART(lines_64k) {
  std::string bytes;
  while (bytes.size() < 64 * 1024) bytes += "epoch 3 step 1234 loss 0.123456 lr 0.001\n";
  bytes += "a line that continues";
  return [cutter = std::make_shared<LineSplitter>(), bytes](size_t n) {
    size_t shown = 0;
    const auto show = [&shown](std::string_view text) { shown += text.size(); };
    while (n-- > 0) cutter->feed(bytes, show, show);
    keep(shown);
  };
}

}  // namespace cpprun::bench

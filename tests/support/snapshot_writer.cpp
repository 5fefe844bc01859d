// Makes one save on the real disk: snapshot_writer DIR STEP FILL. The tests kill it on its way.
#include <cstdio>
#include <cstdlib>

#include "tests/support/saves.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  constexpr int64_t kBytes = 1'500'000;  // enough to go past the page cache
  cpprun::Status saved = cpprun::test::save(cpprun::snapshot_files::real_files(), argv[1],
                                            std::atoll(argv[2]), argv[3][0], kBytes);
  if (!saved.ok()) std::fprintf(stderr, "%s\n", saved.error().text.c_str());
  return saved.ok() ? 0 : 1;
}

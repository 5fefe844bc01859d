// Makes one save on the real disk: snapshot_writer DIR STEP FILL. Tests kill it during the save.
#include <cstdio>
#include <cstdlib>

#include "tests/support/saves.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  constexpr int64_t kBytes = 1'500'000;  // large enough for direct I/O
  cpprun::Status saved = cpprun::test::save(cpprun::snapshot_files::real_files(), argv[1],
                                            std::atoll(argv[2]), argv[3][0], kBytes);
  if (!saved.ok()) std::fprintf(stderr, "%s\n", saved.error().text.c_str());
  return saved.ok() ? 0 : 1;
}

// A save as in a job, with recognizable content; for tests of the state after a save.
#pragma once

#include <string>

#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/folders/catalog.hpp"
#include "snapshot_files/folders/commit.hpp"
#include "snapshot_files/folders/prune.hpp"

namespace cpprun::test {

// A tree with one storage of `bytes` times `fill`.
inline pickle::Value tree(char fill, int64_t bytes) {
  return pickle::Dict{{{"fill", std::string(1, fill)},
                       {"weight", pickle::TensorRef{"0", "uint8", bytes, 0, {bytes}, {1}, false}}}};
}

inline Status write_tensors(snapshot_files::FileLayer& files, snapshot_files::Draft& draft,
                            const std::string& name, char fill, int64_t size,
                            snapshot_files::Manifest& manifest) {
  auto file = files.create(draft.path_of(name));
  if (!file) return file.error();
  const std::string bytes(static_cast<size_t>(size), fill);
  if (Status done = (*file)->reserve(bytes.size()); !done.ok()) return done;
  Result<archive::Written> written = archive::write_file(
      **file, tree(fill, size), [&](const auto&) { return archive::bytes_of(bytes); });
  if (!written) return written.error();
  manifest.files.push_back({name, written->bytes, written->crc32});
  return (*file)->sync();
}

// Two writers into one draft; one of them publishes, and prunes to the newest two.
inline Status save(snapshot_files::FileLayer& files, const std::string& dir, int64_t step,
                   char fill, int64_t size = 100'000) {
  using namespace snapshot_files;
  const std::string nonce = make_nonce();
  Result<Draft> first = Draft::create(files, dir, step, nonce);
  if (!first) return first.error();
  Result<Draft> second = Draft::join(files, dir, step, nonce);
  if (!second) return second.error();
  Manifest manifest;
  manifest.id = std::string(32, fill);
  manifest.step = step;
  Status done = write_tensors(files, *first, "model.pt", fill, size, manifest);
  if (done.ok()) done = write_tensors(files, *second, "rank-1.pt", fill, size, manifest);
  if (done.ok()) done = first->write_manifest(manifest);
  if (done.ok()) {
    Result<std::string> published = first->publish();
    if (!published) done = published.error();
  }
  if (!done.ok()) {
    first->discard();
    return done;
  }
  static_cast<void>(prune(files, dir, {.last = 2}));  // its failure loses nothing
  return {};
}

// "2b": step and fill of the newest complete snapshot, or why there is none. Verifies every
// snapshot that is complete by its manifest.
inline std::string newest(snapshot_files::FileLayer& files, const std::string& dir) {
  using namespace snapshot_files;
  Result<Catalog> catalog = scan(files, dir);
  if (!catalog || catalog->complete.empty()) return "none";
  for (const FoundSnapshot& found : catalog->complete) {
    Status verified = verify(files, found);
    if (!verified.ok()) return verified.error().text;
  }
  const FoundSnapshot& found = catalog->complete.front();
  return std::to_string(found.step) + found.manifest.id[0];
}

}  // namespace cpprun::test

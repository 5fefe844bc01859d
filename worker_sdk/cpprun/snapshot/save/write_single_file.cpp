// The single-file form: rank 0 writes the file and includes the other ranks' own state.
#include <cstring>
#include <filesystem>
#include <memory>

#include "cpprun/snapshot/outcome_codec.hpp"
#include "cpprun/snapshot/save/writing.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/folders/commit.hpp"
#include "snapshot_files/folders/prune.hpp"

namespace cpprun::snapshot {
namespace {

using pickle::Dict;
using pickle::List;
using pickle::Value;

class MemoryOutput final : public archive::Output {
 public:
  Status write_at(uint64_t offset, archive::ConstBytes bytes) override {
    if (text_.size() < offset + bytes.size()) text_.resize(offset + bytes.size());
    if (!bytes.empty()) std::memcpy(text_.data() + offset, bytes.data(), bytes.size());
    return {};
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// A rank's own state as a tensor file, which it sends to rank 0.
Result<std::string> pack(const StagedFile& own) {
  MemoryOutput output;
  const auto written = archive::write_file(
      output, own.value, [&](const std::string& name) { return own.whole(name); });
  if (!written) return written.error();
  return output.take();
}

// Adds `prefix` to the names of all storages in `value`, so that those of several ranks differ.
void rename_storages(Value& value, const std::string& prefix) {
  if (auto* tensor = value.get_if<pickle::TensorRef>()) {
    tensor->storage.insert(0, prefix);
  } else if (auto* dict = value.get_if<Dict>()) {
    for (auto& [key, held] : dict->pairs) rename_storages(held, prefix);
  } else if (auto* list = value.get_if<List>()) {
    for (Value& item : list->items) rename_storages(item, prefix);
  }
}

class Merged {
 public:
  explicit Merged(const StagedFile& shared) : value_(shared.value), shared_(shared) {}

  Status add_rank(int rank, const std::string& packed) {
    const auto file = archive::TensorFile::open(
        std::make_shared<archive::MemorySource>(archive::bytes_of(packed), "a rank's state"));
    if (!file) return file.error();
    const std::string prefix = "rank" + std::to_string(rank) + "_";
    for (const auto& each : archive::storages_of(file->value())) {
      std::string bytes(each.bytes, '\0');
      Status read = file->read_storage(each.name, archive::writable_bytes_of(bytes));
      if (!read) return read;
      storages_.emplace(prefix + each.name, std::move(bytes));
    }
    Value own = file->value();
    rename_storages(own, prefix);
    ranks_.items.push_back(std::move(own));
    return {};
  }

  Result<archive::Written> write(archive::Output& output) {
    value_.get_if<Dict>()->pairs.emplace_back(kRanksKey, std::move(ranks_));
    return archive::write_file(output, value_, [&](const std::string& name) {
      const auto found = storages_.find(name);
      return found == storages_.end() ? shared_.whole(name) : archive::bytes_of(found->second);
    });
  }

 private:
  Value value_;
  const StagedFile& shared_;
  List ranks_;
  std::map<std::string, std::string, std::less<>> storages_;
};

Status write_all(const Staged& staged, const WriteContext& context, StoreChannel& channel,
                 const Result<std::string>& own) {
  Merged merged(staged.shared.front());
  Status failed;
  for (int rank = 0; rank < context.world; ++rank) {
    auto packed =
        rank == 0 ? own : decode_outcome(channel.get("own/" + std::to_string(rank)), rank);
    const Status added = packed ? merged.add_rank(rank, *packed) : packed.error();
    if (!added && failed) failed = added;
  }
  if (!failed) return failed;
  auto& files = *context.files;
  auto draft = snapshot_files::create_file_draft(files, context.place);
  const auto attempt = [&]() -> Status {
    if (!draft) return draft.error();
    const auto written = merged.write(*draft->file);
    if (!written) return written.error();
    if (Status synced = draft->file->sync(); !synced) return synced;
    draft->file.reset();
    const Status permission = context.request_commit(staged.step);
    return permission ? snapshot_files::replace_file(files, draft->path, context.place)
                      : permission;
  };
  const Status status = attempt();
  if (draft && !status) static_cast<void>(files.remove_file(draft->path));
  const std::filesystem::path folder = std::filesystem::path(context.place).parent_path();
  static_cast<void>(snapshot_files::sweep_drafts(files, folder.empty() ? "." : folder.string()));
  return status;
}

}  // namespace

Result<std::string> write_single_file(const Staged& staged, const WriteContext& context,
                                      StoreChannel& channel) {
  const Result<std::string> own = pack(staged.own);
  if (context.rank == 0) {
    const Status status = write_all(staged, context, channel, own);
    const Status sent = channel.set("decision", encode(status));
    if (!status) return status.error();
    if (!sent) return sent.error();
    return context.place;
  }
  const Status sent = channel.set("own/" + std::to_string(context.rank), encode(own));
  if (!sent) return sent.error();
  const auto decision = decode_outcome(channel.get("decision"), 0);
  if (!decision) return decision.error();
  return context.place;
}

}  // namespace cpprun::snapshot

#include "launcher/cpprunctl/snapshot/snapshot_formats.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace cpprun::ctl {
namespace {

using pickle::Dict;
using pickle::List;
using pickle::Value;

constexpr std::string_view kModelKey = "MODEL_STATE";
constexpr std::string_view kRanksKey = "RANKS";
constexpr std::string_view kStateEnding = "_STATE";
// Keys that are the same in both forms.
constexpr std::string_view kMarks[] = {"CPPRUN_FORMAT", "STEP", "TRAINING_SECONDS"};

bool is_mark(const std::string& key) { return std::ranges::find(kMarks, key) != std::end(kMarks); }

template <int (*change)(int)>
std::string changed(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(change(c)); });
  return text;
}

// "OPTIMIZER_STATE" -> "optimizer", "EPOCHS_RUN" -> "epochs_run".
std::string folder_key(std::string key) {
  if (is_mark(key)) return key;
  if (key.ends_with(kStateEnding)) key.resize(key.size() - kStateEnding.size());
  return changed<std::tolower>(std::move(key));
}
std::string single_key(const std::string& key, const Value& value) {
  if (is_mark(key)) return key;
  const bool is_state = value.get_if<Dict>() != nullptr;
  return changed<std::toupper>(key) + (is_state ? std::string(kStateEnding) : "");
}

}  // namespace

Result<FolderFormat> to_folder(const Value& single) {
  const auto* dict = single.get_if<Dict>();
  const Value* model = dict == nullptr ? nullptr : dict->find(kModelKey);
  if (model == nullptr) {
    return Error{ErrorKind::BadValue, "it has no MODEL_STATE, so it is no snapshot"};
  }
  FolderFormat folder;
  Dict others;
  for (const auto& [key, value] : dict->pairs) {
    const auto* name = key.get_if<std::string>();
    if (name == nullptr) continue;
    if (*name == kModelKey) {
      folder.model = value;
    } else if (const auto* ranks = *name == kRanksKey ? value.get_if<List>() : nullptr) {
      folder.ranks = ranks->items;
    } else {
      others.pairs.emplace_back(folder_key(*name), value);
    }
  }
  folder.optimizer = std::move(others);
  return folder;
}

Value to_single(const FolderFormat& folder) {
  Dict single;
  if (const auto* others = folder.optimizer.get_if<Dict>()) {
    for (const auto& [key, value] : others->pairs) {
      const auto* name = key.get_if<std::string>();
      if (name != nullptr) single.pairs.emplace_back(single_key(*name, value), value);
    }
  }
  single.pairs.emplace_back(std::string(kModelKey), folder.model);
  if (!folder.ranks.empty()) {
    single.pairs.emplace_back(std::string(kRanksKey), List{folder.ranks});
  }
  return single;
}

const Value& model_of(const Value& value) {
  const auto* dict = value.get_if<Dict>();
  const Value* model = dict == nullptr ? nullptr : dict->find(kModelKey);
  return model == nullptr ? value : *model;
}

std::optional<int64_t> number_at(const Value& value, std::string_view key) {
  const auto* dict = value.get_if<Dict>();
  const Value* found = dict == nullptr ? nullptr : dict->find(key);
  const auto* number = found == nullptr ? nullptr : found->get_if<int64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

size_t strip_prefix(Value& value, std::string_view prefix) {
  size_t stripped = 0;
  if (auto* list = value.get_if<List>()) {
    for (Value& item : list->items) stripped += strip_prefix(item, prefix);
  }
  auto* dict = value.get_if<Dict>();
  if (dict == nullptr) return stripped;
  const bool have_all = !dict->pairs.empty() && std::ranges::all_of(dict->pairs, [&](auto& pair) {
    const auto* name = pair.first.template get_if<std::string>();
    return name != nullptr && name->starts_with(prefix) && name->size() > prefix.size();
  });
  for (auto& [key, held] : dict->pairs) {
    if (have_all) key = key.get_if<std::string>()->substr(prefix.size());
    stripped += strip_prefix(held, prefix);
  }
  return stripped + (have_all ? 1 : 0);
}

}  // namespace cpprun::ctl

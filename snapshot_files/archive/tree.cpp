#include "snapshot_files/archive/tree.hpp"

namespace cpprun::archive {
namespace {

std::string key_text(const pickle::Value& key) {
  if (const auto* text = key.get_if<std::string>()) return *text;
  if (const auto* number = key.get_if<int64_t>()) return std::to_string(*number);
  return std::string("<") + pickle::kind_name(key) + ">";
}

void add_leaves(const pickle::Value& value, const std::string& path, char separator,
                std::vector<Leaf>& leaves) {
  const size_t before = leaves.size();
  const auto add_below = [&](const std::string& key, const pickle::Value& held) {
    add_leaves(held, path.empty() ? key : path + separator + key, separator, leaves);
  };
  if (const pickle::Values* items = value.items()) {
    for (size_t i = 0; i < items->size(); ++i) add_below(std::to_string(i), (*items)[i]);
  } else if (const auto* dict = value.get_if<pickle::Dict>()) {
    for (const auto& [key, held] : dict->pairs) add_below(key_text(key), held);
  }
  if (leaves.size() == before) leaves.push_back({path, &value});  // each child adds a leaf
}

}  // namespace

std::vector<Leaf> leaves_of(const pickle::Value& value, char separator) {
  std::vector<Leaf> all;
  add_leaves(value, "", separator, all);
  return all;
}

}  // namespace cpprun::archive

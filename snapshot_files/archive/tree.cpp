#include "snapshot_files/archive/tree.hpp"

namespace cpprun::archive {
namespace {

std::string key_text(const pickle::Value& key) {
  if (const auto* text = key.get_if<std::string>()) return *text;
  if (const auto* number = key.get_if<int64_t>()) return std::to_string(*number);
  return std::string("<") + pickle::kind_name(key) + ">";
}

class Collector {
 public:
  Collector(char separator, std::vector<Leaf>& out) : separator_(separator), out_(out) {}

  void visit(const pickle::Value& value, const std::string& path) {
    if (const auto* list = value.get_if<pickle::List>()) {
      items(value, list->items, path);
    } else if (const auto* tuple = value.get_if<pickle::Tuple>()) {
      items(value, tuple->items, path);
    } else if (const auto* dict = value.get_if<pickle::Dict>()) {
      for (const auto& [key, held] : dict->pairs) visit(held, below(path, key_text(key)));
      if (dict->pairs.empty()) out_.push_back({path, &value});
    } else {
      out_.push_back({path, &value});
    }
  }

 private:
  void items(const pickle::Value& whole, const pickle::Values& items, const std::string& path) {
    for (size_t i = 0; i < items.size(); ++i) visit(items[i], below(path, std::to_string(i)));
    if (items.empty()) out_.push_back({path, &whole});
  }
  std::string below(const std::string& path, const std::string& key) const {
    return path.empty() ? key : path + separator_ + key;
  }

  const char separator_;
  std::vector<Leaf>& out_;
};

}  // namespace

std::vector<Leaf> leaves_of(const pickle::Value& value, char separator) {
  std::vector<Leaf> all;
  Collector(separator, all).visit(value, "");
  return all;
}

}  // namespace cpprun::archive

// Traversal of value trees.
#pragma once

#include <string>
#include <vector>

#include "snapshot_files/pickle/value.hpp"

namespace cpprun::archive {

// Calls visit(const pickle::TensorRef&) in the order of the tree.
template <class Visit>
void for_each_tensor(const pickle::Value& value, const Visit& visit) {
  if (const auto* tensor = value.get_if<pickle::TensorRef>()) visit(*tensor);
  if (const pickle::Values* items = value.items()) {
    for (const pickle::Value& item : *items) for_each_tensor(item, visit);
  }
  if (const auto* dict = value.get_if<pickle::Dict>()) {
    for (const auto& [key, held] : dict->pairs) for_each_tensor(held, visit);
  }
}

// A value without children, or an empty container. `value` points into the tree.
struct Leaf {
  std::string path;  // keys and positions on the way: "optimizer/param_groups/0/lr"
  const pickle::Value* value = nullptr;
};
std::vector<Leaf> leaves_of(const pickle::Value& value, char separator = '/');

}  // namespace cpprun::archive

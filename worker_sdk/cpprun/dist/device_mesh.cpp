#include "cpprun/dist/device_mesh.hpp"

#include <algorithm>
#include <set>

namespace cpprun::dist {

struct DeviceMesh::State {
  std::string device_type;
  std::vector<int> shape;
  std::vector<std::string> names;
  std::vector<int> coordinate;
  std::vector<ProcessGroup> groups;  // by dimension
};

namespace {

[[noreturn]] void refuse_mesh(const std::string& what) {
  throw DistArgumentError("DeviceMesh: " + what);
}

void check_mesh(const std::string& device_type, const std::vector<int>& shape,
                const std::vector<std::string>& names, int world) {
  if (device_type != "cpu" && device_type != "cuda") {
    refuse_mesh("the device type is '" + device_type + "', wanted is cpu or cuda");
  }
  int64_t ranks = 1;
  for (const int size : shape) {
    if (size <= 0) refuse_mesh("a dimension has the size " + std::to_string(size));
    ranks *= size;
    if (ranks > world) break;
  }
  if (shape.empty() || ranks != world) {
    refuse_mesh("the product of its shape must be the world size, " + std::to_string(world));
  }
  if (!names.empty() && names.size() != shape.size()) {
    refuse_mesh(std::to_string(names.size()) + " names for " + std::to_string(shape.size()) +
                " dimensions");
  }
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) {
    refuse_mesh("two dimensions have one name");
  }
}

std::vector<int> coordinate_of(int rank, const std::vector<int>& shape) {
  std::vector<int> place(shape.size());
  for (size_t i = shape.size(); i-- > 0; rank /= shape[i]) place[i] = rank % shape[i];
  return place;
}

// The ranks of each line along a dimension, in the order in which all ranks make their groups.
std::vector<std::vector<int>> lines_along(size_t dimension, const std::vector<int>& shape,
                                          int world) {
  int step = 1;  // between neighbours of a line
  for (size_t i = dimension + 1; i < shape.size(); ++i) step *= shape[i];
  std::vector<std::vector<int>> lines;
  for (int rank = 0; rank < world; ++rank) {
    if (coordinate_of(rank, shape)[dimension] != 0) continue;
    auto& line = lines.emplace_back();
    for (int i = 0; i < shape[dimension]; ++i) line.push_back(rank + i * step);
  }
  return lines;
}

}  // namespace

DeviceMesh init_device_mesh(const std::string& device_type, const std::vector<int>& mesh_shape,
                            const std::vector<std::string>& mesh_dim_names) {
  const int world = get_world_size();
  check_mesh(device_type, mesh_shape, mesh_dim_names, world);
  auto state = std::make_shared<DeviceMesh::State>();
  state->device_type = device_type;
  state->shape = mesh_shape;
  state->names = mesh_dim_names;
  state->coordinate = coordinate_of(get_rank(), mesh_shape);
  for (size_t i = 0; i < mesh_shape.size(); ++i) {
    const auto lines = lines_along(i, mesh_shape, world);
    state->groups.push_back(new_subgroups_by_enumeration(lines).current);
  }
  return DeviceMesh(std::move(state));
}

const std::string& DeviceMesh::device_type() const { return state_->device_type; }
int DeviceMesh::ndim() const { return static_cast<int>(state_->shape.size()); }
const std::vector<int>& DeviceMesh::shape() const { return state_->shape; }
const std::vector<std::string>& DeviceMesh::mesh_dim_names() const { return state_->names; }

int DeviceMesh::size() const {
  int ranks = 1;
  for (const int each : state_->shape) ranks *= each;
  return ranks;
}

int DeviceMesh::size(int mesh_dim) const { return state_->shape[checked(mesh_dim)]; }

size_t DeviceMesh::checked(int mesh_dim) const {
  if (mesh_dim < 0 || mesh_dim >= ndim()) {
    refuse_mesh("it has no dimension " + std::to_string(mesh_dim) + ", only " +
                std::to_string(ndim()));
  }
  return static_cast<size_t>(mesh_dim);
}

int DeviceMesh::dimension_of(const std::string& name) const {
  const auto found = std::ranges::find(state_->names, name);
  if (found == state_->names.end()) refuse_mesh("no dimension is called '" + name + "'");
  return static_cast<int>(found - state_->names.begin());
}

ProcessGroup DeviceMesh::get_group() const {
  if (ndim() != 1) refuse_mesh("it has several dimensions: name one in get_group");
  return get_group(0);
}
ProcessGroup DeviceMesh::get_group(int mesh_dim) const { return state_->groups[checked(mesh_dim)]; }
ProcessGroup DeviceMesh::get_group(const std::string& mesh_dim_name) const {
  return get_group(dimension_of(mesh_dim_name));
}

int DeviceMesh::get_local_rank(int mesh_dim) const { return state_->coordinate[checked(mesh_dim)]; }
int DeviceMesh::get_local_rank(const std::string& mesh_dim_name) const {
  return get_local_rank(dimension_of(mesh_dim_name));
}
std::vector<int> DeviceMesh::get_coordinate() const { return state_->coordinate; }

DeviceMesh DeviceMesh::operator[](const std::string& mesh_dim_name) const {
  const auto i = static_cast<size_t>(dimension_of(mesh_dim_name));
  return DeviceMesh(std::make_shared<State>(State{state_->device_type,
                                                  {state_->shape[i]},
                                                  {mesh_dim_name},
                                                  {state_->coordinate[i]},
                                                  {state_->groups[i]}}));
}

}  // namespace cpprun::dist

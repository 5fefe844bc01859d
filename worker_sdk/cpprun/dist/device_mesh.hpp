/// @file
/// DeviceMesh: the ranks in a grid, with a process group for each line of it. Python counterpart:
/// torch.distributed.device_mesh, for groups only.
///
///     auto mesh = dist::init_device_mesh("cpu", {2, 4}, {"replicate", "shard"});
///     dist::all_reduce(x, dist::ReduceOp::SUM, {.group = mesh.get_group("shard")});
///
/// Rank r is in the row r / 4, column r % 4. Handles share their groups and are cheap to copy. One
/// thread makes it; everything else from any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist {

/// The ranks of the default group in a grid, with a group for each line of it. Python counterpart:
/// torch.distributed.device_mesh.DeviceMesh. A shared handle; init_device_mesh() makes it.
class DeviceMesh {
 public:
  /// "cpu" or "cuda", as init_device_mesh() was given it; the mesh moves no tensor there.
  const std::string& device_type() const;
  /// Number of dimensions.
  int ndim() const;
  /// The number of ranks along each dimension.
  const std::vector<int>& shape() const;
  /// One name per dimension; empty: no names.
  const std::vector<std::string>& mesh_dim_names() const;
  int size() const;  ///< ranks of the whole mesh
  /// Ranks along one dimension. DistArgumentError if the mesh lacks it.
  int size(int mesh_dim) const;

  /// @{
  /// The group of the ranks that differ from this one in that dimension only. Without an argument:
  /// of a mesh of one dimension. DistArgumentError for a dimension or name that the mesh lacks.
  ProcessGroup get_group() const;
  ProcessGroup get_group(int mesh_dim) const;
  ProcessGroup get_group(const std::string& mesh_dim_name) const;
  /// @}
  /// @{
  /// This rank's position in that dimension, from 0. DistArgumentError for a dimension or name that
  /// the mesh lacks.
  int get_local_rank(int mesh_dim) const;
  int get_local_rank(const std::string& mesh_dim_name) const;
  /// @}
  /// This rank's position in each dimension.
  std::vector<int> get_coordinate() const;
  /// A mesh of this dimension only, through this rank.
  DeviceMesh operator[](const std::string& mesh_dim_name) const;

 private:
  struct State;
  explicit DeviceMesh(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  int dimension_of(const std::string& name) const;
  size_t checked(int mesh_dim) const;
  friend DeviceMesh init_device_mesh(const std::string& device_type,
                                     const std::vector<int>& mesh_shape,
                                     const std::vector<std::string>& mesh_dim_names);

  std::shared_ptr<const State> state_;
};

/// All ranks of the default group call it. `device_type`: "cpu" or "cuda". DistArgumentError unless
/// the product of the shape is the world size and names are as many as dimensions, or none.
DeviceMesh init_device_mesh(const std::string& device_type, const std::vector<int>& mesh_shape,
                            const std::vector<std::string>& mesh_dim_names = {});

}  // namespace cpprun::dist

#include "cpprun/snapshot/folder_group.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "snapshot_files/folders/commit.hpp"

namespace cpprun::snapshot {

constexpr const char* kNoMarker = "none";

const Group& FolderGroup::get() {
  if (!group_) group_ = determine();
  return *group_;
}

void FolderGroup::forget_if_uncertain() {
  if (!is_certain_) group_.reset();
}

// One rank of each node creates a marker file. A rank that sees another node's marker shares the
// folder with that node.
Group FolderGroup::determine() {
  std::vector<int> first_of_node;  // of each rank
  for (const std::string& first : comm_.gather(std::to_string(comm_.node().first_rank))) {
    first_of_node.push_back(std::stoi(first));
  }
  Group group = determine(first_of_node[static_cast<size_t>(comm_.rank())]);
  for (const int rank : group.members) {
    const auto first = [&](int member) { return first_of_node[static_cast<size_t>(member)]; };
    if (group.nodes.empty() || first(group.nodes.back().front()) != first(rank)) {
      group.nodes.emplace_back();
    }
    group.nodes.back().push_back(rank);
  }
  return group;
}

// All but the nodes.
Group FolderGroup::determine(int first_of_node) {
  Group all;
  all.is_single_file = location_.is_single_file;
  if (location_.is_single_file || comm_.world() == 1) {
    for (int rank = 0; rank < comm_.world(); ++rank) all.members.push_back(rank);
    all.leaders = {0};
    is_certain_ = true;
    return all;
  }
  auto& files = snapshot_files::real_files();
  const std::string folder = location_.path + "/";
  std::string marker;
  if (comm_.rank() == first_of_node) {
    std::error_code ignored;  // the first save reports the reason
    std::filesystem::create_directories(location_.path, ignored);
    marker = "." + snapshot_files::make_nonce() + ".sign";
    if (!files.create(folder + marker)) marker = kNoMarker;
  }
  const auto markers = comm_.gather(marker);
  // While a node cannot create its marker, the node's ranks count as a group of their own.
  const bool is_blind = markers[static_cast<size_t>(first_of_node)] == kNoMarker;
  int leader = is_blind ? first_of_node : comm_.rank();
  is_certain_ = std::ranges::count(markers, kNoMarker) == 0;
  for (size_t rank = 0; rank < markers.size() && leader == comm_.rank(); ++rank) {
    const bool is_marker = !markers[rank].empty() && markers[rank] != kNoMarker;
    if (is_marker && files.exists(folder + markers[rank])) {
      leader = std::min(leader, static_cast<int>(rank));
    }
  }
  const auto leaders = comm_.gather(std::to_string(leader));
  if (!marker.empty() && marker != kNoMarker) {
    static_cast<void>(files.remove_file(folder + marker));
  }
  for (int rank = 0; rank < comm_.world(); ++rank) {
    const int of_rank = std::stoi(leaders[static_cast<size_t>(rank)]);
    if (of_rank == leader) all.members.push_back(rank);
    if (of_rank == rank) all.leaders.push_back(rank);
  }
  return all;
}

}  // namespace cpprun::snapshot

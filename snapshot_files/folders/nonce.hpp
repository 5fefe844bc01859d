// Paths, and names of drafts: ".step-<n>.<nonce>.tmp" for folders, ".<name>.<nonce>.tmp" for files;
// of what is set aside: "left-step-<n>.<nonce>". Private.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cpprun::snapshot_files {

// "runs/" -> "runs".
std::string without_slash(std::string path);
// "/a/b" -> "/a"; "b" -> ".".
std::string folder_of(const std::string& path);

std::string draft_name(std::string_view name, std::string_view nonce);
// The nonce of a draft's name; nothing when it is another's.
std::optional<std::string> nonce_of_draft(std::string_view name);
std::string left_name(std::string_view snapshot, std::string_view nonce);
bool is_left_name(std::string_view name);
// Made on this machine since it booted?
bool is_of_this_boot(std::string_view nonce);

}  // namespace cpprun::snapshot_files

// Names: ".step-<n>.<nonce>.tmp" of draft folders, ".<name>.<nonce>.tmp" of draft files,
// "left-step-<n>.<nonce>" of folders set aside. Private.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cpprun::snapshot_files {

std::string draft_name(std::string_view name, std::string_view nonce);
// The nonce in a draft's name; nothing if the name is not a draft's.
std::optional<std::string> nonce_of_draft(std::string_view name);
std::string left_name(std::string_view snapshot, std::string_view nonce);
bool is_left_name(std::string_view name);
// Whether all are hexadecimal digits in lower case.
bool is_hex(std::string_view text);
// Whether make_nonce() made it on this machine since its boot.
bool is_of_this_boot(std::string_view nonce);

}  // namespace cpprun::snapshot_files

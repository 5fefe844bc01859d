#include "launcher/cpprunctl/install_as.hpp"

#include <filesystem>
#include <system_error>

#include "launcher/report/text_table.hpp"

namespace cpprun {
namespace {

namespace fs = std::filesystem;

bool is_ours(const fs::path& link) {
  std::error_code error;
  return fs::is_symlink(link, error) && fs::read_symlink(link, error).filename() == "cpprun";
}

Error failed(const std::string& what, const std::error_code& error) {
  return Error{ErrorKind::System, what + ": " + error.message()};
}

Status remove_link(const fs::path& link) {
  std::error_code error;
  if (!is_ours(link)) {
    return Error{ErrorKind::BadValue,
                 link.string() + " is not a link that cpprunctl install-as has made"};
  }
  if (!fs::remove(link, error)) return failed("cannot remove " + link.string(), error);
  ctl::print("removed " + link.string() + "\n");
  return {};
}

}  // namespace

Status install_as(const InstallOptions& options) {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path link = (options.dir.empty() ? here : fs::path(options.dir)) / options.name;
  if (options.is_undo) return remove_link(link);
  const fs::path program = here / "cpprun";
  if (!fs::exists(program, error)) {
    return Error{ErrorKind::BadValue, "there is no cpprun in " + here.string()};
  }
  if (fs::exists(fs::symlink_status(link, error))) {
    if (!is_ours(link)) {
      return Error{ErrorKind::BadValue,
                   link.string() +
                       " exists, and cpprunctl has not made it\nhint: --dir DIR makes " +
                       options.name + " in another folder; put that in front of PATH"};
    }
    fs::remove(link, error);
  }
  fs::create_symlink(program, link, error);
  if (error) return failed("cannot make " + link.string(), error);
  ctl::print(link.string() + " is a link to " + program.string() + "\n");
  return {};
}

}  // namespace cpprun

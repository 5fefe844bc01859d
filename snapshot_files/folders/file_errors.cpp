#include "snapshot_files/folders/file_errors.hpp"

#include <cerrno>

namespace cpprun::snapshot_files {
namespace {

const char* cure(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT: return "; free some there, keep fewer snapshots, or name another folder";
    case EROFS: return "; name a folder that can be written";
    case EACCES:
    case EPERM: return "; give this user the right, or name another folder";
    case ENOENT: return "; check the path";
    case EIO: return "; the disk has failed, so look at the kernel's log";
    case ESTALE:
    case ETIMEDOUT: return "; the file server is gone or has restarted, so mount it again";
    case EMFILE:
    case ENFILE: return "; raise the limit of open files (ulimit -n)";
    case ELOOP: return "; it is a link, and links are not followed here";
    default: return "";
  }
}

}  // namespace

Error file_error(const std::string& doing, const std::string& path, int errno_value) {
  Error error = system_error("can't " + doing + " " + path, errno_value);
  error.text += cure(errno_value);
  return error;
}

}  // namespace cpprun::snapshot_files

#include "agent/process/channel/shared_page.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace cpprun {

Result<SharedPage> SharedPage::make() {
  UniqueFd memory(::memfd_create("cpprun-worker-page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.is_open()) return system_error("memfd_create", errno);
  // A reader of a page that another process shrinks would get SIGBUS.
  const bool is_sealed =
      ::ftruncate(memory.get(), sizeof(WorkerPage)) == 0 &&
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (!is_sealed) return system_error("sealing a page for a worker", errno);
  void* at =
      ::mmap(nullptr, sizeof(WorkerPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) return system_error("mmap of a page for a worker", errno);
  auto* page = new (at) WorkerPage;
  page->bytes = sizeof(WorkerPage);
  return SharedPage(std::move(memory), page);
}

SharedPage::~SharedPage() {
  if (page_ != nullptr) ::munmap(page_, sizeof(WorkerPage));
}

}  // namespace cpprun

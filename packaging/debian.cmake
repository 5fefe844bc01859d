# `cpack --config build/release/CPackConfig.cmake`: cpprun_*.deb, and libcpprun-dev_*.deb with the SDK of this build.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cpprun)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The cpprun developers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL cpprun dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)

set(CPACK_DEBIAN_CPPRUN_PACKAGE_NAME cpprun)
set(CPACK_DEBIAN_CPPRUN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_CPPRUN_DESCRIPTION "torchrun in C++: starts, supervises and restarts the workers of a training job
 Use cpprun instead of torchrun. It needs neither Python nor torch.")
set(CPACK_DEBIAN_CPPRUN_PACKAGE_DEPENDS "libc6 (>= 2.36)")  # the newest symbol that the programs use

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libcpprun-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION "worker SDK of cpprun: DistributedDataParallel in C++
 Static libraries, headers and a CMake package: find_package(cpprun COMPONENTS worker torch).")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "nlohmann-json3-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "cpprun")
include(CPack)

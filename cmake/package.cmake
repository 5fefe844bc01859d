# `cmake --install`: the programs, and the worker SDK as a CMake package for
#
#   find_package(cpprun COMPONENTS worker torch)
#
# include/cpprun has the public headers, include/cpprun-internal the headers of other folders that they include. Two components:
# `cpprun` (the programs) and `dev` (the SDK); packaging/ makes a Debian package of each. tests/sdk/package installs the SDK and
# builds against it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CPPRUN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/cpprun)

# cpprun_install_component(NAME TARGETS ...): installs static libraries as one export; users see cpprun_x as cpprun::x.
function(cpprun_install_component component)
  foreach(target ${ARGN})
    string(REGEX REPLACE "^cpprun_" "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/cpprun-internal>)
  endforeach()
  install(TARGETS ${ARGN} EXPORT cpprun-${component} COMPONENT dev)
  install(EXPORT cpprun-${component} NAMESPACE cpprun:: DESTINATION ${CPPRUN_PACKAGE_DIR} COMPONENT dev)
endfunction()

# The public headers are these and those that they include.
function(cpprun_install_headers)
  set(headers cpprun/worker.hpp cpprun/worker.h)
  if(CPPRUN_TORCH)
    list(APPEND headers cpprun/torch.hpp cpprun/pch.hpp cpprun/dist/native.hpp)
  endif()
  install(CODE "set(CPPRUN_SOURCE \"${PROJECT_SOURCE_DIR}\")
    set(CPPRUN_HEADERS \"${headers}\")
    set(CPPRUN_INCLUDE \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")" COMPONENT dev)
  install(SCRIPT cmake/install_headers.cmake COMPONENT dev)
endfunction()

function(cpprun_install_package)
  if(CPPRUN_TORCH)
    get_directory_property(LibTorch_VERSION DIRECTORY worker_sdk DEFINITION LibTorch_VERSION)
  endif()
  configure_package_config_file(cmake/cpprun-config.cmake.in ${PROJECT_BINARY_DIR}/package/cpprun-config.cmake
                                INSTALL_DESTINATION ${CPPRUN_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/cpprun-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/package/cpprun-config.cmake ${PROJECT_BINARY_DIR}/package/cpprun-config-version.cmake
          cmake/FindLibTorch.cmake DESTINATION ${CPPRUN_PACKAGE_DIR} COMPONENT dev)
  install(DIRECTORY examples/cmake_project DESTINATION ${CMAKE_INSTALL_DATADIR}/cpprun/examples COMPONENT dev)
endfunction()

# Installs manual pages, systemd units and completion scripts.
function(cpprun_install_extras)
  install(FILES packaging/man/cpprun.1 packaging/man/cpprunctl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT cpprun)
  install(PROGRAMS packaging/checks/cpprun-check-gpus packaging/checks/cpprun-check-machine
                   packaging/checks/cpprun-check-nvhcd
          DESTINATION ${CMAKE_INSTALL_DATADIR}/cpprun/checks COMPONENT cpprun)
  install(PROGRAMS packaging/hooks/cpprun-exclude-slurm packaging/hooks/cpprun-exclude-kubernetes
          DESTINATION ${CMAKE_INSTALL_DATADIR}/cpprun/hooks COMPONENT cpprun)
  install(FILES packaging/systemd/cpprun-rendezvous.service packaging/systemd/cpprun@.service
          DESTINATION lib/systemd/system COMPONENT cpprun)
  foreach(place bash bash-completion/completions/cpprun zsh zsh/vendor-completions/_cpprun)
    if(place MATCHES "sh$")
      set(shell ${place})
      continue()
    endif()
    set(script ${PROJECT_BINARY_DIR}/completion.${shell})
    install(CODE "execute_process(COMMAND \"$<TARGET_FILE:cpprun>\" --print-completion ${shell}
      OUTPUT_FILE \"${script}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT cpprun)
    get_filename_component(folder ${CMAKE_INSTALL_DATADIR}/${place} DIRECTORY)
    get_filename_component(name ${place} NAME)
    install(FILES ${script} DESTINATION ${folder} RENAME ${name} COMPONENT cpprun)
  endforeach()
endfunction()

install(TARGETS cpprun cpprunctl RUNTIME COMPONENT cpprun)
cpprun_install_extras()
cpprun_install_component(worker cpprun_worker cpprun_worker_protocol cpprun_store_client cpprun_tcpstore cpprun_common)
if(CPPRUN_TORCH)
  cpprun_install_component(torch cpprun_torch cpprun_elastic cpprun_trainer cpprun_snapshot cpprun_snapshot_files cpprun_archive cpprun_pickle cpprun_libdeflate
                           cpprun_optim cpprun_data cpprun_nn cpprun_dist)
endif()
if(CPPRUN_TORCH)
  install(FILES ${LIBDEFLATE_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR}/cpprun COMPONENT dev)
  install(FILES /usr/share/doc/libdeflate-dev/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/cpprun
          RENAME libdeflate-copyright COMPONENT dev OPTIONAL)
endif()
if(TARGET cpprun_nccl)
  get_filename_component(_libtorch ${LibTorch_CPU_LIBRARY} DIRECTORY)
  get_filename_component(_nccl ${CPPRUN_NCCL_LIBRARY} DIRECTORY)
  set_target_properties(cpprun_nccl PROPERTIES INSTALL_RPATH "${_libtorch};${_nccl}")  # the plug-in is bound to the LibTorch and NCCL of its build
  install(TARGETS cpprun_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
endif()
cpprun_install_headers()
cpprun_install_package()
include(packaging/debian.cmake)

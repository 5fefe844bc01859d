# Finds LibTorch in the Python wheel `torch` or in a LibTorch folder, without LibTorch's own CMake package, which needs nvcc.
#
# Searches LIBTORCH (variable or environment: the folder with include/ and lib/), then the project's .venv, then the torch that
# `python3` would import. Defines libtorch::libtorch (CPU), libtorch::cuda if LibTorch has CUDA, LibTorch_VERSION, LibTorch_ROOT.
set(_libtorch_candidates ${LIBTORCH} $ENV{LIBTORCH})
if(NOT _libtorch_candidates)
  file(GLOB _libtorch_venv ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  list(APPEND _libtorch_candidates ${_libtorch_venv})
  if(NOT _libtorch_candidates)
    find_program(LIBTORCH_PYTHON NAMES python3 python)
    if(LIBTORCH_PYTHON)
      # find_spec locates torch without the slow import.
      execute_process(COMMAND ${LIBTORCH_PYTHON} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
                      OUTPUT_VARIABLE _libtorch_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      list(APPEND _libtorch_candidates ${_libtorch_python})
    endif()
  endif()
endif()

find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/version.h HINTS ${_libtorch_candidates} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY torch_cpu HINTS ${_libtorch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 HINTS ${_libtorch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(LibTorch_CUDA_LIBRARY torch_cuda HINTS ${_libtorch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda HINTS ${_libtorch_candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)

if(LibTorch_INCLUDE_DIR)
  get_filename_component(LibTorch_ROOT ${LibTorch_INCLUDE_DIR} DIRECTORY)
  set(_libtorch_version_header ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h)
  if(NOT EXISTS ${_libtorch_version_header})
    set(_libtorch_version_header ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include/torch/version.h)
  endif()
  file(STRINGS ${_libtorch_version_header} _libtorch_lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" _libtorch_numbers "${_libtorch_lines}")
  string(REPLACE ";" "." LibTorch_VERSION "${_libtorch_numbers}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "Install it with `pip install torch`, or name its folder: -DLIBTORCH=<folder with include/ and lib/>")

if(LibTorch_FOUND AND NOT TARGET libtorch::libtorch)
  add_library(libtorch::c10 SHARED IMPORTED GLOBAL)
  set_target_properties(libtorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(libtorch::libtorch SHARED IMPORTED GLOBAL)
  set_target_properties(libtorch::libtorch PROPERTIES
    IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    # Struct members in some jit headers depend on it; libtorch was built with it.
    INTERFACE_COMPILE_DEFINITIONS USE_DISTRIBUTED
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_LINK_LIBRARIES libtorch::c10)
  if(LibTorch_CUDA_LIBRARY AND LibTorch_C10_CUDA_LIBRARY)
    add_library(libtorch::c10_cuda SHARED IMPORTED GLOBAL)
    set_target_properties(libtorch::c10_cuda PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_CUDA_LIBRARY})
    add_library(libtorch::cuda SHARED IMPORTED GLOBAL)
    set_target_properties(libtorch::cuda PROPERTIES IMPORTED_LOCATION ${LibTorch_CUDA_LIBRARY}
      INTERFACE_LINK_LIBRARIES "libtorch::libtorch;libtorch::c10_cuda")
  endif()
endif()
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_CUDA_LIBRARY LibTorch_C10_CUDA_LIBRARY)

# Compiler flags of all targets, and the functions that declare modules.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# -O3 costs build time and memory without a measurable gain.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  add_compile_options(-fsigned-char)  # as on x86-64, where all tests run
endif()
find_program(CCACHE ccache)
if(CCACHE)
  # Clones of the same sources share the cache; precompiled headers are cached too.
  set(cache_settings CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${cache_settings} ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)
  endif()
  # ccache runs clang in the place of g++: cpprun_compile_with_clang(). Not with a sanitizer or for coverage, where each compiler
  # needs its own library.
  find_program(CLANG clang++)
  if(CLANG AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release AND NOT CPPRUN_SANITIZE)
    set(clang_launcher ${CMAKE_COMMAND} -E env ${cache_settings} CCACHE_COMPILER=${CLANG} CCACHE_COMPILERTYPE=clang ${CCACHE})
  endif()
endif()
# __FILE__ in a unity file is an absolute path otherwise: the compiler cache would miss in another clone.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

add_library(cpprun_flags INTERFACE)
target_compile_options(cpprun_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # False warnings of g++ 12 inside std::string and std::variant (GCC bugs 105651, 105329, 105562).
  target_compile_options(cpprun_flags INTERFACE -Wno-restrict -Wno-stringop-overflow
                         -Wno-maybe-uninitialized)
endif()
target_include_directories(cpprun_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(CPPRUN_SANITIZE)
  # Without vptr: that check needs a pipe, and some tests run out of descriptors on purpose.
  add_compile_options(-fsanitize=${CPPRUN_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CPPRUN_SANITIZE})
  if(NOT CPPRUN_SANITIZE_POINTERS)
    add_compile_options(-fno-sanitize=null,alignment)
  endif()
endif()
if(CPPRUN_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(cpprun_flags INTERFACE -Wno-tsan)  # Asio uses fences, which g++'s TSan does not support
endif()

# cpprun_precompiled_header(TARGET HEADER): targets that reuse it need the same compile options. HEADER in brackets: a name in quotes
# becomes an absolute path, which clones do not share in ccache.
function(cpprun_precompiled_header name header)
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_precompile_headers(${name} PRIVATE ${header})
  target_link_libraries(${name} PRIVATE cpprun_flags)
endfunction()

# cpprun_module(NAME SOURCES ... LINKS ...): a static library. LINKS may name only lower layers (tools/check_layers.py).
function(cpprun_module name)
  cmake_parse_arguments(M "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${M_SOURCES})
  # Projects that link the installed library must not inherit our warning flags.
  target_link_libraries(${name} PUBLIC ${M_LINKS} PRIVATE $<BUILD_INTERFACE:cpprun_flags>)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
endfunction()

# cpprun_torch_module(NAME SOURCES ... LINKS ...): a module that uses LibTorch; it shares the precompiled header.
function(cpprun_torch_module name)
  cpprun_module(${name} ${ARGN})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/worker_sdk>)
  target_link_libraries(${name} PUBLIC libtorch::libtorch)
  target_precompile_headers(${name} REUSE_FROM cpprun_library_pch)
endfunction()

# In builds with tests, ccache lets clang compile a folder, which calls this before all else: programs at -O0, for which it needs half
# of g++'s time. g++ loads all of a precompiled header for each source file, and instantiates again what <torch/torch.h> has queued (5 s).
# Not for sources with Asio, in whose names the two compilers differ. The two variables of precompiled headers are CMake's own for clang;
# CMake reads them once for the whole folder.
macro(cpprun_compile_with_clang)
  if(CPPRUN_TESTS AND clang_launcher)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${clang_launcher})
    set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -Xclang -emit-pch -Xclang -include -Xclang <PCH_HEADER> -x c++-header -fpch-instantiate-templates)
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE> -Xclang -include -Xclang <PCH_HEADER>)
    add_compile_options(-Wno-unknown-warning-option)  # clang does not know all of g++'s
  endif()
endmacro()

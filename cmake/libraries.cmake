# What comes from outside. Asio's source is compiled once (cmake/asio.cpp); system headers are not warned about.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_path(SPDLOG_INCLUDE_DIR spdlog/spdlog.h REQUIRED)

add_library(cpprun_asio STATIC ${CMAKE_CURRENT_LIST_DIR}/asio.cpp)
target_compile_definitions(cpprun_asio PUBLIC BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
                           BOOST_ASIO_DISABLE_BOOST_REGEX)
target_link_libraries(cpprun_asio PUBLIC Boost::headers Threads::Threads)

add_library(cpprun_spdlog INTERFACE)
target_compile_definitions(cpprun_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_include_directories(cpprun_spdlog SYSTEM INTERFACE ${SPDLOG_INCLUDE_DIR})
target_link_libraries(cpprun_spdlog INTERFACE fmt::fmt-header-only)

# libdeflate's crc32 is the quickest there is. Its static form, so that no program needs the library where it runs; it is installed
# with the SDK, so that no project of a user needs it either.
include(GNUInstallDirs)
find_path(LIBDEFLATE_INCLUDE_DIR libdeflate.h REQUIRED)
find_library(LIBDEFLATE_LIBRARY NAMES libdeflate.a REQUIRED)
add_library(cpprun_libdeflate INTERFACE)
target_include_directories(cpprun_libdeflate SYSTEM INTERFACE $<BUILD_INTERFACE:${LIBDEFLATE_INCLUDE_DIR}>)
target_link_libraries(cpprun_libdeflate INTERFACE $<BUILD_INTERFACE:${LIBDEFLATE_LIBRARY}>
                      $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/cpprun/libdeflate.a>)

# OpenSSL's headers alone: the library is loaded when TLS is asked for.
find_path(OPENSSL_INCLUDE_DIR openssl/ssl.h REQUIRED)

# libsodium's HMAC-SHA256, in its static form: only what is used of it is linked.
find_path(SODIUM_INCLUDE_DIR sodium.h REQUIRED)
find_library(SODIUM_LIBRARY NAMES libsodium.a REQUIRED)
add_library(cpprun_sodium INTERFACE)
target_include_directories(cpprun_sodium SYSTEM INTERFACE ${SODIUM_INCLUDE_DIR})
target_link_libraries(cpprun_sodium INTERFACE ${SODIUM_LIBRARY})

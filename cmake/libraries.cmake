# Third-party libraries. Asio is compiled once (cmake/asio.cpp). Their headers are SYSTEM, so that they cause no warnings.

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

# libdeflate, for its fast crc32. Linked statically, so that no program needs it at run time, and installed with the SDK, so that
# users' projects need not provide it.
include(GNUInstallDirs)
find_path(LIBDEFLATE_INCLUDE_DIR libdeflate.h REQUIRED)
find_library(LIBDEFLATE_LIBRARY NAMES libdeflate.a REQUIRED)
add_library(cpprun_libdeflate INTERFACE)
target_include_directories(cpprun_libdeflate SYSTEM INTERFACE $<BUILD_INTERFACE:${LIBDEFLATE_INCLUDE_DIR}>)
target_link_libraries(cpprun_libdeflate INTERFACE $<BUILD_INTERFACE:${LIBDEFLATE_LIBRARY}>
                      $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/cpprun/libdeflate.a>)

# Only OpenSSL's headers: the library is loaded at run time if TLS is used.
find_path(OPENSSL_INCLUDE_DIR openssl/ssl.h REQUIRED)

# libsodium, for HMAC-SHA256. Linked statically: only the used functions are included.
find_path(SODIUM_INCLUDE_DIR sodium.h REQUIRED)
find_library(SODIUM_LIBRARY NAMES libsodium.a REQUIRED)
add_library(cpprun_sodium INTERFACE)
target_include_directories(cpprun_sodium SYSTEM INTERFACE ${SODIUM_INCLUDE_DIR})
target_link_libraries(cpprun_sodium INTERFACE ${SODIUM_LIBRARY})

# Runs at build time: embeds a text file in a C++ source file, as the result of a function in namespace cpprun.
#
# Parameters: INPUT, OUTPUT, HEADER (declares the function), FUNCTION.
cmake_policy(VERSION 3.25)
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"${HEADER}\"

namespace cpprun {
namespace {
constexpr unsigned char kText[] = {${bytes}};
}  // namespace

std::string_view ${FUNCTION}() {
  return {reinterpret_cast<const char*>(kText), sizeof kText};
}

}  // namespace cpprun
")

# Runs at build time: joins the dashboard's files into one page and embeds it in a C++ source file.
#
# Parameters: FOLDER (with page.html, style.css and the scripts), SCRIPTS (their names in order,
# separated by commas), OUTPUT.
cmake_policy(VERSION 3.25)
file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/style.css style)
string(REPLACE "," ";" names "${SCRIPTS}")
set(script "")
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name} one)
  string(APPEND script "${one}")
endforeach()
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
file(WRITE ${OUTPUT}.html "${page}")
file(READ ${OUTPUT}.html bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"rendezvous/server/dashboard/dashboard_page.hpp\"

namespace cpprun {
namespace {
constexpr unsigned char kPage[] = {${bytes}};
}  // namespace

std::string_view dashboard_page() {
  return {reinterpret_cast<const char*>(kPage), sizeof kPage};
}

}  // namespace cpprun
")

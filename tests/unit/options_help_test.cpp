// What is shown: help, version, completion; and that docs/flags.md says what the table says.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/text.hpp"
#include "launcher/options/option_table.hpp"
#include "tests/unit/options_support.hpp"

namespace cpprun::test {
namespace {

TEST(OptionsHelp, ListsEveryFlagInBothSpellings) {
  std::string help = shown_by({"--help"});
  EXPECT_EQ(help, shown_by({"-h"}));
  EXPECT_TRUE(help.starts_with("usage: cpprun "));
  for (const OptionRow& row : option_table()) {
    EXPECT_TRUE(holds(help, "--" + std::string(row.name))) << row.name;
    EXPECT_TRUE(holds(help, "--" + underscored(row.name))) << row.name;
    EXPECT_TRUE(holds(help, std::string(row.group) + ":\n")) << row.group;
  }
}

TEST(OptionsHelp, FitsEightyColumns) {
  for (const std::string& text : text::split(shown_by({"--help"}), '\n')) {
    EXPECT_LE(text.size(), 80u) << text;
    EXPECT_FALSE(text.ends_with(' ')) << text;
  }
}

TEST(OptionsHelp, VersionIsOneLine) {
  EXPECT_EQ(shown_by({"--version"}), "cpprun " CPPRUN_VERSION "\n");
}

TEST(OptionsHelp, CompletionKnowsEveryFlag) {
  for (const char* shell : {"bash", "zsh", "tcsh"}) {
    std::string script = shown_by({std::string("--print-completion=") + shell});
    for (const OptionRow& row : option_table())
      EXPECT_TRUE(holds(script, std::string(row.name))) << shell << row.name;
    EXPECT_TRUE(holds(script, "cpprun"));
  }
}

std::string dealt_with(const OptionRow& row) {
  switch (row.treatment) {
    case Treatment::Full:
      return "full";
    case Treatment::NoEffect:
      return "checked, without effect";
    case Treatment::Refused:
      return "refused";
  }
  return "";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string table_of(bool is_own) {
  std::string out = is_own ? "| flag | values | what it does | note |\n| --- | --- | --- | --- |\n"
                           : "| flag | values | since torch | in cpprun | what it does | note |\n"
                             "| --- | --- | --- | --- | --- | --- |\n";
  for (const OptionRow& row : option_table()) {
    if (row.is_own() != is_own) continue;
    std::string name = row.letter == '\0' ? "" : std::string("`-") + row.letter + "`, ";
    out += "| " + name + "`--" + std::string(row.name) + "` | " +
           (row.value.empty() ? "" : "`" + escaped(row.value) + "`") + " | ";
    if (!is_own) out += std::string(row.since) + " | " + dealt_with(row) + " | ";
    out += escaped(row.help) + " | " + escaped(row.note) +
           (row.has_variable || row.kind == OptionKind::Question
                ? ""
                : std::string(row.note.empty() ? "" : "; ") + "no PET_ variable") +
           " |\n";
  }
  return out;
}

// CPPRUN_UPDATE=1 writes the tables anew between the marks.
std::string with_tables(std::string page) {
  for (bool is_own : {false, true}) {
    std::string mark = is_own ? "own flags" : "torchrun's flags";
    std::string begin = "<!-- " + mark + ": made from the option table -->\n";
    std::string end = "<!-- end of " + mark + " -->\n";
    size_t from = page.find(begin);
    size_t to = page.find(end);
    if (from == std::string::npos || to == std::string::npos) return "marks are missing";
    from += begin.size();
    page.replace(from, to - from, table_of(is_own));
  }
  return page;
}

TEST(OptionsHelp, TheFlagsPageSaysWhatTheTableSays) {
  const std::string path = "docs/flags.md";  // ctest runs the tests in the project's root
  std::ifstream in(path);
  std::stringstream page;
  page << in.rdbuf();
  std::string wanted = with_tables(page.str());
  if (std::getenv("CPPRUN_UPDATE") != nullptr) std::ofstream(path) << wanted;
  EXPECT_EQ(page.str(), wanted) << "run this test once with CPPRUN_UPDATE=1";
}

}  // namespace
}  // namespace cpprun::test

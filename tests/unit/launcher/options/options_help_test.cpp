// Help, version, completion; docs/reference/flags.md equals the table.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/text.hpp"
#include "common/version.hpp"
#include "launcher/options/option_table.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

TEST(OptionsHelp, ListsEveryFlagInBothSpellings) {
  std::string help = shown_by({"--help"});
  EXPECT_EQ(help, shown_by({"-h"}));
  EXPECT_TRUE(help.starts_with("usage: cpprun "));
  for (const OptionRow& row : option_table()) {
    EXPECT_TRUE(holds(help, "--" + std::string(row.name))) << row.name;
    EXPECT_TRUE(holds(help, "--" + underscored(row.name))) << row.name;
    const std::string heading(heading_before(row));
    EXPECT_TRUE(heading.empty() || holds(help, "\n" + heading + ":\n")) << heading;
  }
}

TEST(OptionsHelp, FitsEightyColumns) {
  for (const std::string& text : text::split(shown_by({"--help"}), '\n')) {
    EXPECT_LE(text.size(), 80u) << text;
    EXPECT_FALSE(text.ends_with(' ')) << text;
  }
}

TEST(OptionsHelp, VersionIsOneLine) {
  EXPECT_EQ(shown_by({"--version"}), "cpprun " + version() + "\n");
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
  switch (row.details.treatment) {
    case Treatment::Full: return "full";
    case Treatment::NoEffect: return "checked, without effect";
    case Treatment::Refused: return "refused";
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
    std::string name =
        row.details.letter == '\0' ? "" : std::string("`-") + row.details.letter + "`, ";
    out += "| " + name + "`--" + std::string(row.name) + "` | " +
           (row.value.empty() ? "" : "`" + escaped(row.value) + "`") + " | ";
    if (!is_own) out += std::string(row.since) + " | " + dealt_with(row) + " | ";
    out += escaped(row.help) + " | " + escaped(row.note) +
           (row.details.has_variable || row.kind() == OptionKind::Question
                ? ""
                : std::string(row.note.empty() ? "" : "; ") + "no PET_ variable") +
           " |\n";
  }
  return out;
}

// Replaces the part between the marks with `text`.
std::string with_text(std::string page, const std::string& begin, const std::string& end,
                      const std::string& text) {
  size_t from = page.find(begin);
  const size_t to = page.find(end);
  if (from == std::string::npos || to == std::string::npos) return "marks are missing";
  from += begin.size();
  return page.replace(from, to - from, text);
}

std::string with_tables(std::string page) {
  for (bool is_own : {false, true}) {
    const std::string mark = is_own ? "own flags" : "torchrun's flags";
    page = with_text(page, "<!-- " + mark + ": made from the option table -->\n",
                     "<!-- end of " + mark + " -->\n", table_of(is_own));
  }
  return page;
}

// For troff: dashes that a search finds, and no line that begins with a request.
std::string troff(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string manual_options() {
  std::string out;
  for (const OptionRow& row : option_table()) {
    const std::string_view heading = heading_before(row);
    if (!heading.empty()) out += ".SS " + troff(heading) + "\n";
    out += ".TP\n";
    if (row.details.letter != '\0')
      out += "\\fB\\-" + std::string(1, row.details.letter) + "\\fR, ";
    out += "\\fB\\-\\-" + troff(row.name) + "\\fR";
    if (row.takes_value()) out += "=\\fI" + troff(row.value) + "\\fR";
    out += "\n" + troff(row.help) + "\n";
  }
  return out;
}

std::string with_options(std::string page) {
  return with_text(std::move(page), ".\\\" options: made from the option table\n",
                   ".\\\" end of options\n", manual_options());
}

// CPPRUN_UPDATE=1 rewrites the page.
void expect_up_to_date(const std::string& path, std::string (*made)(std::string)) {
  std::ifstream in(path);  // ctest runs the tests in the project's root
  std::stringstream page;
  page << in.rdbuf();
  const std::string wanted = made(page.str());
  if (std::getenv("CPPRUN_UPDATE") != nullptr) std::ofstream(path) << wanted;
  EXPECT_EQ(page.str(), wanted) << "run this test once with CPPRUN_UPDATE=1";
}

TEST(OptionsHelp, TheFlagsPageMatchesTheTable) {
  expect_up_to_date("docs/reference/flags.md", with_tables);
}

TEST(OptionsHelp, TheManualPageMatchesTheTable) {
  expect_up_to_date("packaging/man/cpprun.1", with_options);
}

}  // namespace
}  // namespace cpprun::test

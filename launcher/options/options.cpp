#include "launcher/options/options.hpp"

#include "common/text.hpp"
#include "launcher/options/completion.hpp"
#include "launcher/options/parse.hpp"
#include "launcher/options/tokenizer.hpp"

namespace cpprun {

namespace {

std::string answer(const Words& words) {
  if (words.question->name == "help") return help_text();
  if (words.question->name == "version") return "cpprun " CPPRUN_VERSION "\n";
  return completion_script(words.options.back().value);
}

// Not inlined: where g++ 12 sees which alternative is moved, it warns of the other as
// uninitialised.
template <class Part>
[[gnu::noinline]] Asked asked(Part part) {
  return Asked(std::move(part));
}

}  // namespace

Result<Asked> read_options(std::span<const std::string> args, const Environment& environment) {
  Result<Words> words = tokenize(args, environment);
  if (!words) return words.error();
  if (words->question != nullptr) return asked(Shown{answer(*words)});
  Result<ParsedOptions> parsed = parse_words(*words);
  if (!parsed) return parsed.error();
  Result<Launch> launch = resolve(*parsed, environment);
  if (!launch) return launch.error();
  return asked(std::move(*launch));
}

std::string shown_error(const Error& error) {
  if (error.kind == ErrorKind::Usage) return error.text + "\n";
  std::string out;
  for (const std::string& line : text::split(error.text, '\n')) out += "cpprun: " + line + "\n";
  return out;
}

}  // namespace cpprun

#include "launcher/options/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/text.hpp"

namespace cpprun {
namespace {

constexpr std::string_view kUsage =
    "\nusage: cpprun [options] script [arguments of the script]\n"
    "       cpprun -h lists the common options, cpprun --help all";

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

// argparse's negative numbers, which are values, not options: -1, -.5, -1.5.
bool is_negative_number(std::string_view arg) {
  constexpr std::string_view kDigits = "0123456789";
  arg.remove_prefix(1);
  size_t whole = std::min(arg.find_first_not_of(kDigits), arg.size());
  if (whole == arg.size()) return whole > 0;
  std::string_view rest = arg.substr(whole);
  return rest.front() == '.' && rest.size() > 1 &&
         rest.find_first_not_of(kDigits, 1) == std::string_view::npos;
}

// The options that `name` (dashed, without leading dashes) may mean: the exact one, else torchrun's
// with that prefix, else ours. So a flag of ours never makes an abbreviation of a torchrun flag
// ambiguous.
std::vector<const OptionRow*> candidates(std::string_view name) {
  if (const OptionRow* exact = find_option(name)) return {exact};
  std::vector<const OptionRow*> theirs;
  std::vector<const OptionRow*> own;
  for (const OptionRow& row : option_table()) {
    if (row.name.starts_with(name)) (row.is_own() ? own : theirs).push_back(&row);
  }
  return theirs.empty() ? own : theirs;
}

const OptionRow* by_letter(char letter) {
  for (const OptionRow& row : option_table()) {
    if (row.details.letter == letter && letter != '\0') return &row;
  }
  return nullptr;
}

// An argument that may be an option, split into its parts.
struct Option {
  std::string spelling;                   // "--tee", "-t"
  std::vector<const OptionRow*> fitting;  // none: unknown; several: ambiguous
  std::optional<std::string> value;       // after "=" or directly after the letter
};

Option take_apart(std::string_view arg) {
  Option option;
  if (!arg.starts_with("--")) {
    option.spelling = arg.substr(0, 2);
    if (const OptionRow* row = by_letter(arg[1])) option.fitting.push_back(row);
    std::string_view rest = arg.substr(2);
    if (rest.starts_with('=')) rest.remove_prefix(1);
    if (arg.size() > 2) option.value = rest;
    return option;
  }
  size_t equals = arg.find('=');
  option.spelling = arg.substr(0, equals);
  option.fitting = candidates(dashed(std::string_view(option.spelling).substr(2)));
  if (equals != std::string_view::npos) option.value = arg.substr(equals + 1);
  return option;
}

// Nothing if the argument is a script or a value.
std::optional<Option> as_option(std::string_view arg) {
  if (arg.size() < 2 || arg.front() != '-') return std::nullopt;
  Option option = take_apart(arg);
  if (!option.fitting.empty()) return option;
  if (is_negative_number(arg) || arg.find(' ') != std::string_view::npos) return std::nullopt;
  return option;
}

// Options of mpirun, accelerate and deepspeed.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kOtherLaunchers{
    {{"-n", "--nproc-per-node"},
     {"--gpus", "--nproc-per-node"},
     {"--num-gpus", "--nproc-per-node"},
     {"--num-processes", "--nproc-per-node"},
     {"--num-nodes", "--nnodes"},
     {"--num-machines", "--nnodes"},
     {"--machine-rank", "--node-rank"},
     {"--main-process-ip", "--master-addr"},
     {"--main-process-port", "--master-port"}}};

Error unknown_option(const Option& option) {
  for (const auto& [theirs, ours] : kOtherLaunchers) {
    if (dashed(option.spelling) == theirs)
      return usage_error("unknown option " + option.spelling + "\nhint: cpprun's is " +
                         std::string(ours));
  }
  std::vector<std::string> names;
  for (const OptionRow& row : option_table()) names.push_back("--" + std::string(row.name));
  std::string near = text::nearest(dashed(option.spelling), names);
  return usage_error("unknown option " + option.spelling +
                     (near.empty() ? "" : "\nhint: did you mean " + near + "?"));
}

Error ambiguous_option(const Option& option) {
  std::vector<std::string> names;
  for (const OptionRow* row : option.fitting) names.push_back("--" + std::string(row->name));
  return usage_error("ambiguous option " + option.spelling + "\nhint: it could be " +
                     text::join(names, ", "));
}

// The value of an option that stands without one.
std::string value_of_bare_option(const OptionRow& row) {
  const std::vector<std::string> words = choice_values(row);
  return words.empty() ? "yes" : words.front();
}

// Checks the form of one value; with `is_free` any word is accepted for a choice.
Result<std::string> checked(const OptionRow& row, const std::string& spelling, std::string value,
                            bool is_free) {
  const std::string what = "invalid " + spelling + " " + in_quotes(value);
  if (row.kind() == OptionKind::Int) {
    std::optional<int64_t> number = text::parse_int(value);
    if (!number) return usage_error(what + ": not a whole number");
    return std::to_string(*number);
  }
  if (row.kind() == OptionKind::Float && !text::parse_double(value)) {
    return usage_error(what + ": not a number");
  }
  if (is_free || row.details.choices.empty()) return value;
  std::vector<std::string> tokens = choice_values(row);
  if (std::find(tokens.begin(), tokens.end(), value) != tokens.end()) return value;
  return usage_error(what + "\nhint: it is one of " + text::join(tokens, ", "));
}

class Tokenizer {
 public:
  explicit Tokenizer(std::span<const std::string> args) : args_(args) {}

  // Reads the options, the script and its arguments; stops at a Question.
  Status read_line();
  // Adds the variables' values of options that the command line does not have.
  Status read_variables(const Environment& environment);

  TokenList take() { return std::move(tokens_); }
  bool is_question() const { return tokens_.question != nullptr; }

 private:
  std::string taken_script() const;
  Status read_option(Option option);
  Status read_flag(const OptionRow& row, const Option& option);
  Status read_value(const OptionRow& row, Option option);
  Status add(const OptionRow& row, const std::string& spelling, std::string value);
  bool has(const OptionRow& row) const;
  void read_program(size_t from) {
    tokens_.program.assign(args_.begin() + static_cast<ptrdiff_t>(from), args_.end());
  }

  std::span<const std::string> args_;
  size_t next_ = 0;
  TokenList tokens_;
};

Status Tokenizer::read_line() {
  while (next_ < args_.size() && !is_question()) {
    const std::string& arg = args_[next_];
    std::optional<Option> option;
    if (arg != "--") option = as_option(arg);
    if (!option) {
      read_program(arg == "--" ? next_ + 1 : next_);
      break;
    }
    ++next_;
    if (Status status = read_option(std::move(*option)); !status) return status;
  }
  if (!is_question() && tokens_.program.empty()) {
    return usage_error("the script to run is missing\nhint: it stands behind the options" +
                       taken_script());
  }
  return {};
}

// After `--nproc-per-node train.py`: the option has the script as its value.
std::string Tokenizer::taken_script() const {
  if (tokens_.options.empty()) return "";
  const Token& last = tokens_.options.back();
  if (!last.value.ends_with(".py") || args_.back() != last.value) return "";
  return "; " + last.spelling + " takes a value, and has taken " + in_quotes(last.value);
}

Status Tokenizer::read_option(Option option) {
  if (option.fitting.empty()) return unknown_option(option);
  if (option.fitting.size() > 1) return ambiguous_option(option);
  const OptionRow& row = *option.fitting.front();
  if (row.takes_value()) return read_value(row, std::move(option));
  if (row.details.is_value_optional) {
    if (!option.value) return add(row, option.spelling, value_of_bare_option(row));
    return read_value(row, std::move(option));
  }
  return read_flag(row, option);
}

Status Tokenizer::read_flag(const OptionRow& row, const Option& option) {
  bool is_letter = option.spelling.size() == 2;
  if (option.value && !(is_letter && !option.value->empty() && by_letter(option.value->front()))) {
    return usage_error(option.spelling + " takes no value, but has " + in_quotes(*option.value));
  }
  if (row.kind() == OptionKind::Question) {
    tokens_.question = &row;
    tokens_.is_brief = is_letter;
    return {};
  }
  tokens_.options.push_back({&row, "true", option.spelling});
  if (!option.value) return {};
  return read_option(take_apart("-" + *option.value));  // letters in one argument: -mr3
}

Status Tokenizer::read_value(const OptionRow& row, Option option) {
  if (!option.value) {
    if (next_ == args_.size() || args_[next_] == "--" || as_option(args_[next_])) {
      return usage_error(option.spelling + " needs a value\nhint: write --" +
                         std::string(row.name) + "=VALUE if it begins with a dash");
    }
    option.value = args_[next_++];
  }
  if (row.name == "print-completion") tokens_.question = &row;
  return add(row, option.spelling, std::move(*option.value));
}

Status Tokenizer::add(const OptionRow& row, const std::string& spelling, std::string value) {
  Result<std::string> good = checked(row, spelling, std::move(value), false);
  if (!good) return good.error();
  tokens_.options.push_back({&row, std::move(*good), spelling});
  return {};
}

bool Tokenizer::has(const OptionRow& row) const {
  return std::any_of(tokens_.options.begin(), tokens_.options.end(),
                     [&](const Token& w) { return w.option == &row; });
}

Status Tokenizer::read_variables(const Environment& environment) {
  const auto is_option = [](const std::string& each) { return each.starts_with(kVariablePrefix); };
  if (std::ranges::none_of(environment.variables, is_option)) return {};  // as in most starts
  std::vector<Token> found;
  for (const OptionRow& row : option_table()) {
    if (!row.details.has_variable || has(row)) continue;
    std::string name = variable_name(row);
    std::optional<std::string_view> given = environment.variable(name);
    if (!given) continue;
    if (row.kind() == OptionKind::Flag) {
      std::optional<int64_t> number = text::parse_int(*given);
      if (!number) {
        return Error{ErrorKind::BadValue,
                     name + "=" + std::string(*given) + " is not a whole number; write 1 or 0"};
      }
      found.push_back({&row, *number != 0 ? "true" : "false", name});
      continue;
    }
    Result<std::string> good = checked(row, name, std::string(*given), true);
    if (!good) return good.error();
    found.push_back({&row, std::move(*good), name});
  }
  tokens_.options.insert(tokens_.options.begin(), std::make_move_iterator(found.begin()),
                         std::make_move_iterator(found.end()));
  return {};
}

}  // namespace

Error usage_error(std::string_view text) {
  return Error{ErrorKind::Usage, std::string(text) + std::string(kUsage)};
}

Result<TokenList> tokenize(std::span<const std::string> args, const Environment& environment) {
  Tokenizer tokenizer(args);
  if (Status status = tokenizer.read_line(); !status) return status.error();
  if (tokenizer.is_question()) return tokenizer.take();
  if (Status status = tokenizer.read_variables(environment); !status) return status.error();
  return tokenizer.take();
}

}  // namespace cpprun

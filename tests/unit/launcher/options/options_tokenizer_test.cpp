// The grammar: options, their values, and the beginning of the script.
#include "launcher/options/tokenizer.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

// "nnodes=2 standalone=true | script words"
std::string read(const Strings& args, const Machine& machine = {}) {
  Result<TokenList> words = tokenize(args, machine.environment());
  if (!words) return exit_code(words.error()) == 2 ? "usage" : "value";
  std::string out;
  for (const Token& word : words->options)
    out += std::string(word.option->name) + "=" + word.value + " ";
  if (words->question != nullptr) return out + "? " + std::string(words->question->name);
  out += "|";
  for (const std::string& word : words->program) out += " " + word;
  return out;
}

struct Case {
  Strings args;
  std::string expected;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    std::string all;
    for (const std::string& arg : c.args) all += "<" + arg + ">";
    EXPECT_EQ(read(c.args), c.expected) << all;
  }
}

TEST(OptionsTokenizer, ValuesFollowABlankOrAnEqualsSign) {
  expect_all({
      {{"--nnodes", "2", "s"}, "nnodes=2 | s"},
      {{"--nnodes=2", "s"}, "nnodes=2 | s"},
      {{"--nproc_per_node", "2", "s"}, "nproc-per-node=2 | s"},
      {{"--role=", "s"}, "role= | s"},
      {{"--role=a=b", "s"}, "role=a=b | s"},
      {{"--role", "", "s"}, "role= | s"},
      {{"--master-addr=[::1]", "s"}, "master-addr=[::1] | s"},
      {{"--max-restarts", "-1", "s"}, "max-restarts=-1 | s"},
      {{"--monitor-interval", "-.5", "s"}, "monitor-interval=-.5 | s"},
      {{"--role", "-", "s"}, "role=- | s"},
      {{"--role", "-a b", "s"}, "role=-a b | s"},
      {{"--role=-x", "s"}, "role=-x | s"},
      {{"--max-restarts= 010 ", "s"}, "max-restarts=10 | s"},
  });
}

TEST(OptionsTokenizer, ShortOptionsMayJoinTheirValue) {
  expect_all({
      {{"-r3", "s"}, "redirects=3 | s"},
      {{"-r", "3", "s"}, "redirects=3 | s"},
      {{"-r=3", "s"}, "redirects=3 | s"},
      {{"-t0:1,1:2", "s"}, "tee=0:1,1:2 | s"},
      {{"-m", "mod"}, "module=true | mod"},
      {{"-mr3", "mod"}, "module=true redirects=3 | mod"},
      {{"-mt", "1", "mod"}, "module=true tee=1 | mod"},
      {{"-h"}, "? help"},
      {{"-mh"}, "module=true ? help"},
      {{"-mx", "s"}, "usage"},
      {{"-x", "s"}, "usage"},
      {{"-master", "s"}, "usage"},
      {{"-", "x"}, "| - x"},
  });
}

TEST(OptionsTokenizer, AnAbbreviationMustMatchOneFlagOfTorchrun) {
  expect_all({
      {{"--nproc=2", "s"}, "nproc-per-node=2 | s"},
      {{"--nproc_per=2", "--rol=x", "s"}, "nproc-per-node=2 role=x | s"},
      {{"--redirect=3", "s"}, "redirects=3 | s"},
      {{"--nn", "1", "s"}, "nnodes=1 | s"},
      {{"--standa", "s"}, "standalone=true | s"},
      {{"--logs=x", "s"}, "logs-specs=x | s"},
      {{"--local-rank=0", "s"}, "local-ranks-filter=0 | s"},
      {{"--p", "bash"}, "print-completion=bash ? print-completion"},  // not --pass-local-rank
      {{"--v", "s"}, "virtual-local-rank=true | s"},                  // not --version
      {{"--vers"}, "? version"},
      {{"--work=agent", "s"}, "worker-store=agent | s"},
      {{"--pass", "s"}, "pass-local-rank=underscore | s"},
      {{"--rdzv=c10d", "s"}, "usage"},
      {{"--m", "s"}, "usage"},
      {{"--=x", "s"}, "usage"},
      {{"--log=x", "s"}, "usage"},
      {{"--dup=x", "s"}, "usage"},
  });
}

TEST(OptionsTokenizer, EverythingAfterTheScriptBelongsToTheScript) {
  expect_all({
      {{"s", "--nnodes=2", "-h", "--", "-m"}, "| s --nnodes=2 -h -- -m"},
      {{"--standalone", "--", "s", "--foo"}, "standalone=true | s --foo"},
      {{"--", "--odd-name", "-x"}, "| --odd-name -x"},
      {{"--standalone", "s", "--r=16"}, "standalone=true | s --r=16"},
      {{"-5", "x"}, "| -5 x"},
      {{"--x y", "z"}, "| --x y z"},
      {{"", "z"}, "|  z"},
      {{"s", "--", "--"}, "| s -- --"},
  });
}

TEST(OptionsTokenizer, SyntaxErrorsAreUsageErrors) {
  expect_all({
      {{}, "usage"},
      {{"--"}, "usage"},
      {{"--standalone"}, "usage"},
      {{"--no-such-option=1", "s"}, "usage"},
      {{"--nnodes"}, "usage"},
      {{"--nnodes", "--standalone", "s"}, "usage"},
      {{"--nnodes", "--", "s"}, "usage"},
      {{"--standalone=1", "s"}, "usage"},
      {{"--help=x"}, "usage"},
      {{"--max-restarts=abc", "s"}, "usage"},
      {{"--max-restarts=", "s"}, "usage"},
      {{"--max-restarts=1.5", "s"}, "usage"},
      {{"--max-restarts=99999999999999999999", "s"}, "usage"},
      {{"--monitor-interval=abc", "s"}, "usage"},
      {{"--node-rank=x", "s"}, "usage"},
      {{"--master-port=http", "s"}, "usage"},
      {{"--start-method=thread", "s"}, "usage"},
      {{"--numa-binding=sideways", "s"}, "usage"},
      {{"--worker-store=rank1", "s"}, "usage"},
      {{"--pass-local-rank=no", "s"}, "usage"},
      {{"--print-completion=fish"}, "usage"},
      {{"--max-restarts=abc", "--max-restarts=1", "s"}, "usage"},
  });
}

TEST(OptionsTokenizer, HelpAndVersionEndTheParsing) {
  expect_all({
      {{"--help", "--max-restarts=abc"}, "? help"},
      {{"--nnodes=2", "--version", "--bogus"}, "nnodes=2 ? version"},
      {{"--print_completion", "zsh"}, "print-completion=zsh ? print-completion"},
      {{"--max-restarts=abc", "--help"}, "usage"},
  });
  EXPECT_EQ(read({"-h"}, Machine{}.with({"PET_MAX_RESTARTS=lots"})), "? help");
}

TEST(OptionsTokenizer, VariablesReplaceMissingOptions) {
  Machine machine = Machine{}.with(
      {"PET_NPROC_PER_NODE=3", "PET_STANDALONE=1", "PET_NO_PYTHON=0", "PET_MAX_RESTARTS= 4",
       "PET_START_METHOD=bogus", "PET_LOGS_SPECS=x", "PET_NUMA_BINDING=node",
       "PET_LOG_LINE_PREFIX_TEMPLATE=x", "PET_HELP=1", "PET_VERSION=1"});
  EXPECT_EQ(read({"s"}, machine),
            "nproc-per-node=3 standalone=true no-python=false start-method=bogus max-restarts=4 "
            "log-line-prefix-template=x | s");
  EXPECT_EQ(read({"--nproc=1", "--no-python", "s"},
                 Machine{}.with({"PET_NPROC_PER_NODE=3", "PET_NO_PYTHON=0"})),
            "nproc-per-node=1 no-python=true | s");
}

TEST(OptionsTokenizer, InvalidVariablesAreErrorsOnlyWhenUsed) {
  EXPECT_EQ(read({"s"}, Machine{}.with({"PET_MAX_RESTARTS=lots"})), "usage");
  EXPECT_EQ(read({"s"}, Machine{}.with({"PET_MAX_RESTARTS="})), "usage");
  EXPECT_EQ(read({"--max-restarts=1", "s"}, Machine{}.with({"PET_MAX_RESTARTS=lots"})),
            "max-restarts=1 | s");
  EXPECT_EQ(read({"s"}, Machine{}.with({"PET_STANDALONE=yes"})),
            "value");  // exit 1 under torchrun too
  EXPECT_EQ(read({"s"}, Machine{}.with({"PET_STANDALONE=2"})), "standalone=true | s");
}

TEST(OptionsTokenizer, ErrorsNameTheInputAndShowTheUsage) {
  std::string text = error_of({"--nnode_s=2", "s"}).text;
  EXPECT_TRUE(holds(text, "\nusage: cpprun ")) << text;
  EXPECT_TRUE(text.starts_with("unknown option --nnode_s\nhint: did you mean --nnodes?\n")) << text;
  EXPECT_TRUE(holds(error_of({"--max_restarts=abc", "s"}).text,
                    "invalid --max_restarts 'abc': not a whole number"));
  EXPECT_TRUE(holds(error_of({"--rdzv=x", "s"}).text,
                    "--rdzv-backend, --rdzv-endpoint, --rdzv-id, --rdzv-conf"));
  EXPECT_TRUE(holds(error_of({"s"}, Machine{}.with({"PET_MAX_RESTARTS=lots"})).text,
                    "PET_MAX_RESTARTS 'lots'"));
  EXPECT_TRUE(holds(error_of({"--start-method=thread", "s"}).text,
                    "'thread'\nhint: it is one of spawn, fork, forkserver"));
}

TEST(OptionsTokenizer, AnOptionThatHasTakenTheScriptIsNamed) {
  constexpr const char* kHint = "the script to run is missing\nhint: it stands behind the options";
  EXPECT_TRUE(error_of({"--nproc_per_node", "train.py"})
                  .text.starts_with(std::string(kHint) +
                                    "; --nproc_per_node takes a value, and has "
                                    "taken 'train.py'\nusage"));
  for (const Strings& args : std::vector<Strings>{
           {}, {"--nproc-per-node", "2"}, {"--log-dir=train.py"}, {"--standalone"}}) {
    EXPECT_TRUE(error_of(args).text.starts_with(std::string(kHint) + "\nusage"))
        << error_of(args).text;
  }
}

TEST(OptionsTokenizer, OptionsOfOtherLaunchersHaveTheNameOfOurs) {
  const auto hint = [](const char* option) { return error_of({option, "s"}).text; };
  EXPECT_TRUE(hint("-np").starts_with("unknown option -n\nhint: cpprun's is --nproc-per-node\n"));
  EXPECT_TRUE(hint("-n2").starts_with("unknown option -n\nhint: cpprun's is --nproc-per-node\n"));
  EXPECT_TRUE(hint("--num_gpus=2")
                  .starts_with("unknown option --num_gpus\nhint: cpprun's is --nproc-per-node\n"));
  EXPECT_TRUE(holds(hint("--num_machines"), "\nhint: cpprun's is --nnodes\n"));
  EXPECT_TRUE(holds(hint("--main_process_port=1"), "\nhint: cpprun's is --master-port\n"));
  EXPECT_TRUE(holds(hint("--nonsense"), "unknown option --nonsense\nusage"));
}

}  // namespace
}  // namespace cpprun::test

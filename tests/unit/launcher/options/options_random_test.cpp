// Random command lines: each is accepted, shown or rejected with a text; none crashes. The seed is
// fixed.
#include <random>

#include "launcher/options/option_table.hpp"
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

class Writer {
 public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  size_t below(size_t n) { return random_() % n; }

  std::string value() {
    static const Strings kValues = {"",
                                    "0",
                                    "1",
                                    "2",
                                    "-1",
                                    "3:2",
                                    "1:2",
                                    "x",
                                    "0:1,1:2",
                                    "cpu",
                                    "gpu",
                                    "auto",
                                    "c10d",
                                    "static",
                                    "etcd",
                                    "[::1]:1",
                                    "localhost:0",
                                    "join_timeout=5",
                                    "a=b,c",
                                    "'q=1'",
                                    "=",
                                    ",",
                                    "1e300",
                                    "nan",
                                    "99999999999999999999",
                                    "SIGTERM,",
                                    "dash",
                                    "spawn",
                                    "a b",
                                    "-x",
                                    "${local_rank}",
                                    "\x01\xff",
                                    std::string(3000, '9')};
    return kValues[below(kValues.size())];
  }

  std::string name() {
    std::span<const OptionRow> table = option_table();
    std::string name(table[below(table.size())].name);
    if (below(2) == 0) name = underscored(name);
    if (below(4) == 0) name.resize(below(name.size() + 1));
    return "--" + name;
  }

  std::string word() {
    static const Strings kOdd = {"-", "--",       "-r", "-t3", "-m", "-h",  "-mr",
                                 "-", "train.py", "",   "--=", "-=", "---", "-5"};
    switch (below(6)) {
      case 0: return value();
      case 1: return kOdd[below(kOdd.size())];
      case 2: return name();
      default: return name() + "=" + value();
    }
  }

  Strings words() {
    Strings out;
    for (size_t n = below(8); n > 0; --n) out.push_back(word());
    if (below(2) == 0) out.push_back("train.py");
    return out;
  }

  Machine machine() {
    Machine made;
    std::span<const OptionRow> table = option_table();
    for (size_t n = below(4); n > 0; --n) {
      made.variables.push_back(variable_name(table[below(table.size())]) + "=" + value());
    }
    return made;
  }

 private:
  std::mt19937 random_;
};

TEST(OptionsRandom, NeverCrashesAndEveryErrorHasAText) {
  Writer writer(20);
  int accepted = 0;
  for (int i = 0; i < 6'000; ++i) {
    Strings args = writer.words();
    Result<OptionsResult> options_result = ask(args, writer.machine());
    if (options_result.ok()) {
      ++accepted;
      if (const Launch* launch = std::get_if<Launch>(&*options_result)) {
        ASSERT_FALSE(launch->config.workers.program.empty());
        ASSERT_EQ(launch->config.logs.tee.size(),
                  static_cast<size_t>(launch->config.workers.nproc));
        ASSERT_FALSE(launch->config.rendezvous.run_id.empty());
        ASSERT_LE(launch->config.rendezvous.min_nodes, launch->config.rendezvous.max_nodes);
      }
    } else {
      ASSERT_FALSE(options_result.error().text.empty());
      ASSERT_EQ(options_result.error().text.find("\nusage: ") != std::string::npos,
                exit_code(options_result.error()) == 2);
    }
  }
  EXPECT_GT(accepted, 150);
}

}  // namespace
}  // namespace cpprun::test

// The executed command: Python with a script or module, or a program by itself; and the error if it
// is missing.
#include "tests/unit/launcher/options/options_support.hpp"

namespace cpprun::test {
namespace {

Machine machine() {
  Machine m;
  m.files["prog"] = {FileKind::Program, true};
  m.files["bin/prog"] = {FileKind::Program, true};
  m.files["plain-elf"] = {FileKind::Program, false};
  m.files["elf.py"] = {FileKind::Program, true};
  m.files["tool"] = {FileKind::Script, true};
  m.files["not-executable-tool"] = {FileKind::Script, false};
  m.files["script.py"] = {FileKind::Script, true};
  m.files["package"] = {FileKind::Directory, true};
  m.files["-odd.py"] = {FileKind::Other, false};
  return m;
}

Strings program_of(const Strings& args, const Machine& m = machine()) {
  return config_of(args, m).workers.program;
}

TEST(OptionsProgram, PythonRunsScriptsModulesAndFolders) {
  EXPECT_EQ(program_of({"train.py", "-x"}), (Strings{"/opt/bin/python3", "-u", "train.py"}));
  EXPECT_EQ(program_of({"-m", "pkg.train"}),
            (Strings{"/opt/bin/python3", "-u", "-m", "pkg.train"}));
  EXPECT_EQ(program_of({"package"}), (Strings{"/opt/bin/python3", "-u", "package"}));
  EXPECT_EQ(program_of({"script.py"}), (Strings{"/opt/bin/python3", "-u", "script.py"}));
  EXPECT_EQ(program_of({"not-executable-tool"}),
            (Strings{"/opt/bin/python3", "-u", "not-executable-tool"}));
  EXPECT_EQ(program_of({"-"}), (Strings{"/opt/bin/python3", "-u", "-"}));
  EXPECT_EQ(program_of({"--", "-odd.py"}), (Strings{"/opt/bin/python3", "-u", "-odd.py"}));
}

TEST(OptionsProgram, AMacroInTheScriptNameGivesAFilePerWorker) {
  Machine m = machine();
  m.files["s0.py"] = {FileKind::Other, false};
  const Strings typed{"--nproc-per-node=2", "s${local_rank}.py"};
  EXPECT_TRUE(holds(error_of(typed, m).text, "the script s1.py does not exist"));
  m.files["s1.py"] = {FileKind::Other, false};
  EXPECT_EQ(program_of(typed, m), (Strings{"/opt/bin/python3", "-u", "s${local_rank}.py"}));
  EXPECT_TRUE(holds(error_of({"s$rank.py"}, m).text, "the script s$rank.py does not exist"));
}

TEST(OptionsProgram, NoPythonRunsProgramsDirectly) {
  EXPECT_EQ(program_of({"prog", "1"}), Strings{"./prog"});
  EXPECT_EQ(program_of({"bin/prog"}), Strings{"bin/prog"});
  EXPECT_EQ(program_of({"tool"}), Strings{"./tool"});
  EXPECT_EQ(program_of({"--no-python", "bin/prog"}), Strings{"bin/prog"});
  EXPECT_EQ(program_of({"--run-path", "tool"}), (Strings{"/opt/bin/python3", "-u", "tool"}));
}

TEST(OptionsProgram, RunPathOverridesTheOthers) {
  EXPECT_EQ(program_of({"--run-path", "--no-python", "train.py"}),
            (Strings{"/opt/bin/python3", "-u", "train.py"}));
  EXPECT_EQ(program_of({"--run-path", "-m", "train.py"}),
            (Strings{"/opt/bin/python3", "-u", "train.py"}));
  EXPECT_EQ(program_of({"--run-path", "-m", "--no-python", "train.py"}),
            (Strings{"/opt/bin/python3", "-u", "train.py"}));
}

TEST(OptionsProgram, TheInterpreterIsConfigurable) {
  Machine m = machine().with({"PYTHON_EXEC=/my/python"});
  EXPECT_TRUE(holds(error_of({"train.py"}, m).text, "PYTHON_EXEC=/my/python is not an executable"));
  m.files["/my/python"] = {FileKind::Script, true};
  EXPECT_EQ(program_of({"train.py"}, m), (Strings{"/my/python", "-u", "train.py"}));
  EXPECT_EQ(program_of({"train.py"}, machine().with({"PYTHON_EXEC="}))[0], "/opt/bin/python3");

  m = machine();
  m.files.erase("/opt/bin/python3");
  EXPECT_TRUE(holds(error_of({"train.py"}, m).text,
                    "no python3 on PATH to run train.py\nhint: set PYTHON_EXEC"));
  m.files["/bin/python"] = {FileKind::Program, true};
  EXPECT_EQ(program_of({"train.py"}, m)[0], "/bin/python");
}

TEST(OptionsProgram, NamesAMissingProgramOnce) {
  Error error = error_of({"--nproc=8", "nosuch.py"}, machine());
  EXPECT_EQ(exit_code(error), 1);
  EXPECT_TRUE(error.text.starts_with("the script nosuch.py does not exist\nhint: ")) << error.text;
  EXPECT_TRUE(holds(error_of({""}).text, "does not exist"));
  EXPECT_TRUE(
      holds(error_of({"sh", "-c", "x"}).text, "to start the program sh from PATH add --no-python"));
  EXPECT_TRUE(holds(error_of({"--", "--nnodes=2", "train.py"}).text, "options come before the --"));
  EXPECT_TRUE(holds(error_of({"plain-elf"}, machine()).text, "chmod +x"));
  EXPECT_TRUE(holds(error_of({"--no-python", "no-such-program"}).text,
                    "no-such-program: no such program on PATH"));
  EXPECT_TRUE(holds(error_of({"--no-python", "./gone"}).text, "./gone: there is no such file"));
  EXPECT_EQ(exit_code(error_of({"--no-python", "no-such-program"})), 1);
  EXPECT_TRUE(holds(error_of({"--run-path", "prog"}, machine()).text, "leave out --run-path"));
  EXPECT_TRUE(
      holds(error_of({"elf.py"}, machine()).text, "elf.py is a program, not a Python script"));
}

TEST(OptionsProgram, NamesWhatIsWrongWithAProgramThatIsNotPythons) {
  Machine m = machine();
  m.files["./job.sh"] = {FileKind::Script, false};
  m.files["./job.py"] = {FileKind::Other, false};
  m.files["job"] = {FileKind::Script, false};
  m.files["bin"] = m.files["./bin"] = {FileKind::Directory, true};
  const std::vector<std::pair<std::string, std::string>> texts{
      {"./job.sh", "./job.sh: it is not executable\nhint: make it executable by chmod +x ./job.sh"},
      {"./job.py", "./job.py: it is not executable\nhint: leave out --no-python"},
      {"./bin", "./bin: it is a folder"},
      {"bin", "bin: no such program on PATH\nhint: one in this folder is written ./bin"},
      {"tool", "tool: no such program on PATH\nhint: one in this folder is written ./tool"},
      {"job", "job: no such program on PATH\nhint: make it executable by chmod +x ./job, and"},
      {"train.py", "train.py: no such program on PATH\nhint: leave out --no-python"},
  };
  for (const auto& [typed, text] : texts) {
    const Error error = error_of({"--no-python", typed}, m);
    EXPECT_TRUE(error.text.starts_with(text)) << error.text;
    EXPECT_EQ(exit_code(error), 1);
  }
}

TEST(OptionsProgram, AFileInPlaceOfAModuleIsNamed) {
  Machine m = machine();
  m.files["pkg/run.py"] = m.files["both.py"] = {FileKind::Other, false};
  m.files["both"] = {FileKind::Directory, true};
  const std::vector<std::pair<std::string, std::string>> texts{
      {"train.py", "train.py\nhint: leave out -m, or write -m train"},
      {"pkg.run.py", "pkg.run.py\nhint: leave out -m, or write -m pkg.run"},
      {"pkg/run.py", "pkg/run.py\nhint: leave out -m, or write -m pkg.run"},
      {"./train.py", "./train.py\nhint: leave out -m, or write -m train"},
      {"../train.py", "../train.py\nhint: leave out -m"},
      {"pkg/", "pkg/\nhint: leave out -m"},
      {"/opt/train.py", "/opt/train.py\nhint: leave out -m"},
  };
  for (const auto& [typed, text] : texts) {
    const Error error = error_of({"-m", typed}, m);
    EXPECT_TRUE(error.text.ends_with(text)) << error.text;
    EXPECT_EQ(exit_code(error), 1);
  }
  // A package may have a module of that name; Python itself names one that is missing.
  for (const char* name : {"both.py", "gone.py", "pkg.train"}) {
    EXPECT_EQ(program_of({"-m", name}, m), (Strings{"/opt/bin/python3", "-u", "-m", name}));
  }
}

TEST(OptionsProgram, SetsOmpForSeveralWorkersOnly) {
  EXPECT_TRUE(config_of({"--nproc=2", "train.py"}).workers.set_omp_num_threads);
  EXPECT_FALSE(config_of({"--nproc=1", "train.py"}).workers.set_omp_num_threads);
  EXPECT_FALSE(config_of({"--nproc=2", "train.py"}, Machine{}.with({"OMP_NUM_THREADS=4"}))
                   .workers.set_omp_num_threads);
}

TEST(OptionsProgram, CountsNprocKeywords) {
  Machine m;
  m.cpus = 12;
  EXPECT_EQ(config_of({"--nproc=cpu", "train.py"}, m).workers.nproc, 12);
  EXPECT_EQ(config_of({"--nproc=auto", "train.py"}, m).workers.nproc, 12);
  EXPECT_EQ(config_of({"--nproc= 3 ", "train.py"}, m).workers.nproc, 3);
  m.gpus = {4, ""};
  EXPECT_EQ(config_of({"--nproc=gpu", "train.py"}, m).workers.nproc, 4);
  EXPECT_EQ(config_of({"--nproc=auto", "train.py"}, m).workers.nproc, 4);
}

TEST(OptionsProgram, VirtualLocalRankNeedsADevicePerWorker) {
  Machine enough = Machine{}.with({"CUDA_VISIBLE_DEVICES=5,7"});
  EXPECT_TRUE(config_of({"--nproc=2", "--virtual-local-rank", "train.py"}, enough)
                  .workers.is_virtual_local_rank);
  EXPECT_TRUE(
      config_of({"--nproc=9", "--virtual-local-rank", "train.py"}).workers.is_virtual_local_rank);
}

}  // namespace
}  // namespace cpprun::test

// How addresses become names: maps of a process, symbols of an ELF file (this test's own), names.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "cpprun/worker/internal/elf_symbols.hpp"
#include "cpprun/worker/internal/fixed_text.hpp"
#include "cpprun/worker/internal/stack_trace.hpp"

namespace cpprun::worker {
namespace {

std::string content(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

[[gnu::noinline]] std::string stack_from_here() {
  std::string memory(16'384, 0);
  FixedText text(memory.data(), memory.size());
  put_stack_trace(text, nullptr);
  return std::string(text.view());
}

// Not a jump: the caller stands in the stack.
[[gnu::noinline]] std::string stack_at_depth(int depth) {
  return (depth == 0 ? stack_from_here() : stack_at_depth(depth - 1)) + "";
}

TEST(WorkerStack, ItNamesEvenFunctionsThatOnlyThisFileKnows) {
  prepare_stack_trace();
  const std::string stack = stack_from_here();
  const std::string first = stack.substr(0, stack.find('\n'));
  EXPECT_TRUE(first.starts_with("  #0 cpprun::worker::(anonymous namespace)::stack_from_here"))
      << stack;
  EXPECT_NE(first.find("unit_tests+0x"), std::string::npos) << stack;
  EXPECT_NE(stack.find("_start"), std::string::npos) << stack;
}

TEST(WorkerStack, ARecursionIsToldOnce) {
  const std::string stack = stack_at_depth(20);
  EXPECT_NE(stack.find(" more of this)\n"), std::string::npos) << stack;
  EXPECT_NE(stack.find("_start"), std::string::npos) << stack;
}

TEST(WorkerStack, AfterAJumpToNowhereTheCallerComesNext) {
  const uintptr_t caller = reinterpret_cast<uintptr_t>(&stack_from_here) + 1;
  const Interrupted nowhere{.program_counter = 1, .return_address = &caller};
  std::string memory(16'384, 0);
  FixedText text(memory.data(), memory.size());
  put_stack_trace(text, &nowhere);
  EXPECT_TRUE(text.view().starts_with(
      "  #0 ? at 0x1\n  #1 cpprun::worker::(anonymous namespace)::stack_from_here at "))
      << text.view();
}

constexpr const char* kMaps =
    "558a00000000-558a00001000 r--p 00000000 08:01 12 /opt/a b/program\n"
    "558a00001000-558a00002000 r-xp 00001000 08:01 12                     /opt/a b/program\n"
    "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
    "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                          [vdso]\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]";

TEST(WorkerStack, AModuleIsFoundByAddress) {
  const auto found = find_module(kMaps, 0x558a00001234);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, "/opt/a b/program");
  EXPECT_EQ(found->offset, 0x1234u);
  EXPECT_EQ(find_module(kMaps, 0x558a00000fff)->offset, 0xfffu);
}

TEST(WorkerStack, WhatIsNoFileIsNoModule) {
  for (const uint64_t address :
       {0x558a00002000ull, 0x7f0000000000ull, 0x7ffd00000000ull, 0ull, 0xffffffffff600000ull}) {
    EXPECT_FALSE(find_module(kMaps, address).has_value()) << address;
  }
  EXPECT_FALSE(find_module("", 1).has_value());
  EXPECT_FALSE(find_module("nonsense\n-\n", 0).has_value());
}

uint64_t file_offset_of(const void* function) {
  const std::string maps = content("/proc/self/maps");
  return find_module(maps, reinterpret_cast<uintptr_t>(function))->offset;
}

TEST(WorkerStack, AFunctionIsFoundByItsPlaceInTheFile) {
  const std::string program = content("/proc/self/exe");
  const uint64_t offset = file_offset_of(reinterpret_cast<const void*>(&stack_from_here));
  const ElfPlace place = elf_place(bytes(program), offset);
  EXPECT_NE(place.function.find("stack_from_here"), std::string_view::npos) << place.function;
  EXPECT_NE(place.address, 0u);
  EXPECT_EQ(elf_place(bytes(program), 1ull << 60).address, 0u);
}

// Where the headers of the tables of symbols and of names begin.
std::vector<size_t> table_headers(const std::string& program) {
  Elf64_Ehdr header;
  std::memcpy(&header, program.data(), sizeof header);
  std::vector<size_t> found;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    const size_t at = header.e_shoff + i * sizeof section;
    std::memcpy(&section, program.data() + at, sizeof section);
    if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_STRTAB) found.push_back(at);
  }
  return found;
}

bool lies_within(std::string_view part, const std::string& whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Every byte turned over in what says where things are: whatever comes out, nothing is read out of
// bounds (the sanitizers see it).
TEST(WorkerStack, DamagedFilesAreHarmless) {
  std::string program = content("/proc/self/exe");
  const uint64_t offset = file_offset_of(reinterpret_cast<const void*>(&stack_from_here));
  const auto damage = [&](size_t begin, size_t size) {
    for (size_t at = begin; at < begin + size; ++at) {
      program[at] = static_cast<char>(~program[at]);
      EXPECT_TRUE(lies_within(elf_place(bytes(program), offset).function, program)) << at;
      program[at] = static_cast<char>(~program[at]);
    }
  };
  damage(0, sizeof(Elf64_Ehdr));
  for (const size_t at : table_headers(program)) damage(at, sizeof(Elf64_Shdr));
}

TEST(WorkerStack, FilesThatEndEarlyAreHarmless) {
  const std::string whole = content("/proc/self/exe");
  const uint64_t offset = file_offset_of(reinterpret_cast<const void*>(&stack_from_here));
  for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
    const std::string cut = whole.substr(0, size);
    EXPECT_EQ(elf_place(bytes(cut), offset).function, "");
  }
}

std::string name(std::string_view mangled) {
  char memory[128];
  return std::string(readable_name(mangled, memory));
}

TEST(WorkerStack, NamesAreReadable) {
  EXPECT_EQ(name("main"), "main");
  EXPECT_EQ(name("_Z5crashi"), "crash");
  EXPECT_EQ(name("_ZL5crashi"), "crash");
  EXPECT_EQ(name("_ZN7trainer4stepEi"), "trainer::step");
  EXPECT_EQ(name("_ZNK7trainer4lossEv"), "trainer::loss");
  EXPECT_EQ(name("_ZN12_GLOBAL__N_15crashEv"), "(anonymous namespace)::crash");
  EXPECT_EQ(name("_ZN7TrainerC2Ev"), "Trainer::Trainer");
  EXPECT_EQ(name("_ZN7TrainerD1Ev"), "Trainer::~Trainer");
  EXPECT_EQ(name("_ZSt9terminatev"), "std::terminate");
  EXPECT_EQ(name("_ZN4text5splitB5cxx11ESt17basic_string_viewIcSt11char_traitsIcEEc"),
            "text::split");
}

TEST(WorkerStack, TemplatesAndLambdasAreReadableToo) {
  EXPECT_EQ(name("_ZNSt6vectorIiSaIiEE9push_backERKi"), "std::vector<>::push_back");
  EXPECT_EQ(name("_ZN7trainer4stepIN2at6TensorELi3ELb1EEEvT_"), "trainer::step<>");
  EXPECT_EQ(name("_ZZ4mainENKUlN6cpprun4ArgsEE_clES0_"), "main::{lambda}::operator()");
  EXPECT_EQ(name("_ZZN7trainer3runEvENKUlvE0_clEv"), "trainer::run::{lambda}::operator()");
  EXPECT_EQ(name("_ZNSt17_Function_handlerIFvvEN12_GLOBAL__N_1L5kEndsMUlvE5_EE9_M_invokeERKSt9_Any_"
                 "data"),
            "std::_Function_handler<>::_M_invoke");
  EXPECT_EQ(name("_ZN1fILN2at10ScalarTypeE6EXadL_ZN1gEvEEE3runEv"), "f<>::run");
}

TEST(WorkerStack, WhatIsTooIntricateStaysAsItIs) {
  for (const char* text :
       {"", "_Z", "_ZN", "_ZNE", "_Z9", "_Z99abc", "_Z99999999999999999999a", "_ZN3foo", "_ZN3fooI",
        "_ZZ1fv", "_ZZ1fvE", "_ZN7TensorplERKS_", "_ZZZZZZZZZZZZZZZZZZZZ1fvEEEEEEEEEEEEEE"}) {
    EXPECT_EQ(name(text), text);
  }
}

TEST(WorkerStack, NamesWithoutABottomTakeNoStack) {
  for (const char* piece : {"Ul", "Lf", "LUl", "Z", "N"}) {
    std::string text = "_Z1fI";
    for (int i = 0; i < 1'000'000; ++i) text += piece;
    EXPECT_EQ(name(text), text);
  }
}

TEST(WorkerStack, NamesThatEndEarlyAreHarmless) {
  const std::string_view whole = "_ZZN3run4loopIN2at6TensorELi3EXadL_Z1gEEEvT_ENKUliE0_clEi";
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string copy(
        whole.substr(0, size));  // of its own, so that the sanitizers see its end
    EXPECT_LT(name(copy).size(), 128u);
  }
}

}  // namespace
}  // namespace cpprun::worker

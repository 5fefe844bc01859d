// Symbolization of addresses: maps of a process, symbols of an ELF file (this test's own), names.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cpprun/worker/internal/elf_symbols.hpp"
#include "cpprun/worker/internal/fixed_text.hpp"
#include "cpprun/worker/internal/stack_trace.hpp"

namespace cpprun::worker {
namespace {

std::string content(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
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

// Not a tail call: the caller is in the stack.
[[gnu::noinline]] std::string stack_at_depth(int depth) {
  return (depth == 0 ? stack_from_here() : stack_at_depth(depth - 1)) + "";
}

TEST(WorkerStack, NamesEvenStaticFunctions) {
  prepare_stack_trace();
  const std::string stack = stack_from_here();
  const size_t at = stack.find(" cpprun::worker::(anonymous namespace)::stack_from_here at /");
  ASSERT_NE(at, std::string::npos) << stack;
  const size_t line_end = stack.find('\n', at);
  EXPECT_LT(stack.find("unit_tests+0x", at), line_end) << stack;
  EXPECT_NE(stack.find("_start"), std::string::npos) << stack;
}

TEST(WorkerStack, ShowsARecursionOnce) {
  const std::string stack = stack_at_depth(20);
  EXPECT_NE(stack.find(" more of this)\n"), std::string::npos) << stack;
  EXPECT_NE(stack.find("_start"), std::string::npos) << stack;
}

TEST(WorkerStack, AfterAJumpToNullTheCallerComesNext) {
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

TEST(WorkerStack, FindsAModuleByAddress) {
  const auto found = find_module(kMaps, 0x558a00001234);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, "/opt/a b/program");
  EXPECT_EQ(found->offset, 0x1234u);
  EXPECT_EQ(find_module(kMaps, 0x558a00000fff)->offset, 0xfffu);
}

TEST(WorkerStack, AMissingFileIsNoModule) {
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

TEST(WorkerStack, FindsAFunctionByItsFileOffset) {
  const std::string program = content("/proc/self/exe");
  const uint64_t offset = file_offset_of(reinterpret_cast<const void*>(&stack_from_here));
  const ElfPlace place = elf_place(bytes(program), offset);
  EXPECT_NE(place.function.find("stack_from_here"), std::string_view::npos) << place.function;
  EXPECT_NE(place.address, 0u);
  EXPECT_EQ(elf_place(bytes(program), 1ull << 60).address, 0u);
}

// A minimal file with a function: `crash`, 16 bytes from address 0x1000 on, at file offset 0x200.
struct TinyElf {
  Elf64_Ehdr header{};
  Elf64_Phdr part{};
  Elf64_Shdr sections[2]{};
  Elf64_Sym symbol{};
  char names[8] = "\0crash";
};

std::string tiny_elf() {
  TinyElf elf;
  std::memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
  elf.header.e_ident[EI_CLASS] = ELFCLASS64;
  elf.header.e_phentsize = sizeof elf.part;
  elf.header.e_phoff = offsetof(TinyElf, part);
  elf.header.e_phnum = 1;
  elf.header.e_shoff = offsetof(TinyElf, sections);
  elf.header.e_shnum = 2;
  elf.part.p_type = PT_LOAD;
  elf.part.p_offset = 0x200;
  elf.part.p_vaddr = 0x1000;
  elf.part.p_filesz = 0x100;
  elf.sections[0].sh_type = SHT_SYMTAB;
  elf.sections[0].sh_offset = offsetof(TinyElf, symbol);
  elf.sections[0].sh_size = sizeof elf.symbol;
  elf.sections[0].sh_link = 1;
  elf.sections[1].sh_type = SHT_STRTAB;
  elf.sections[1].sh_offset = offsetof(TinyElf, names);
  elf.symbol.st_name = 1;
  elf.symbol.st_info = STT_FUNC;
  elf.symbol.st_value = 0x1000;
  elf.symbol.st_size = 16;
  return {reinterpret_cast<const char*>(&elf), sizeof elf};
}

TEST(WorkerStack, AFunctionEndsAtItsSize) {
  const std::string elf = tiny_elf();
  EXPECT_EQ(elf_place(bytes(elf), 0x200).function, "crash");
  EXPECT_EQ(elf_place(bytes(elf), 0x20F).function, "crash");
  EXPECT_EQ(elf_place(bytes(elf), 0x20F).address, 0x100Fu);
  EXPECT_EQ(elf_place(bytes(elf), 0x210).function, "");
  EXPECT_EQ(elf_place(bytes(elf), 0x210).address, 0x1010u);
  EXPECT_EQ(elf_place(bytes(elf), 0x300).address, 0u);
  EXPECT_EQ(elf_place(bytes(elf), 0x1FF).address, 0u);
}

bool lies_within(std::string_view part, const std::string& whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Every byte in all its values: the reader never reads out of bounds (the sanitizers check it).
TEST(WorkerStack, SurvivesDamagedFiles) {
  std::string elf = tiny_elf();
  for (char& byte : elf) {
    const char good = byte;
    for (int value = 0; value < 256; ++value) {
      byte = static_cast<char>(value);
      ASSERT_TRUE(lies_within(elf_place(bytes(elf), 0x208).function, elf));
    }
    byte = good;
  }
}

TEST(WorkerStack, SurvivesTruncatedFiles) {
  const std::string elf = tiny_elf();
  for (size_t size = 0; size < offsetof(TinyElf, names) + 7; ++size) {
    const std::string cut = elf.substr(0, size);
    EXPECT_EQ(elf_place(bytes(cut), 0x208).function, "") << size;
  }
}

std::string name(std::string_view mangled) {
  char memory[128];
  return std::string(readable_name(mangled, memory));
}

TEST(WorkerStack, DemanglesNames) {
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

TEST(WorkerStack, DemanglesTemplatesAndLambdas) {
  EXPECT_EQ(name("_ZNSt6vectorIiSaIiEE9push_backERKi"), "std::vector<>::push_back");
  EXPECT_EQ(name("_ZN7trainer4stepIN2at6TensorELi3ELb1EEEvT_"), "trainer::step<>");
  EXPECT_EQ(name("_ZZ4mainENKUlN6cpprun4ArgsEE_clES0_"), "main::{lambda}::operator()");
  EXPECT_EQ(name("_ZZN7trainer3runEvENKUlvE0_clEv"), "trainer::run::{lambda}::operator()");
  EXPECT_EQ(name("_ZNSt17_Function_handlerIFvvEN12_GLOBAL__N_1L5kEndsMUlvE5_EE9_M_invokeERKSt9_Any_"
                 "data"),
            "std::_Function_handler<>::_M_invoke");
  EXPECT_EQ(name("_ZN1fILN2at10ScalarTypeE6EXadL_ZN1gEvEEE3runEv"), "f<>::run");
}

TEST(WorkerStack, KeepsTooComplexNames) {
  for (const char* text :
       {"", "_Z", "_ZN", "_ZNE", "_Z9", "_Z99abc", "_Z99999999999999999999a", "_ZN3foo", "_ZN3fooI",
        "_ZZ1fv", "_ZZ1fvE", "_ZN7TensorplERKS_", "_ZZZZZZZZZZZZZZZZZZZZ1fvEEEEEEEEEEEEEE"}) {
    EXPECT_EQ(name(text), text);
  }
}

TEST(WorkerStack, UnboundedNamesUseBoundedStack) {
  for (const char* piece : {"Ul", "Lf", "LUl", "Z", "N"}) {
    std::string text = "_Z1fI";
    for (int i = 0; i < 100'000; ++i) text += piece;
    EXPECT_TRUE(name(text) == text) << piece;  // longer names are not worth showing
  }
}

TEST(WorkerStack, SurvivesTruncatedNames) {
  const std::string_view whole = "_ZZN3run4loopIN2at6TensorELi3EXadL_Z1gEEEvT_ENKUliE0_clEi";
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string copy(
        whole.substr(0, size));  // its own allocation, so that the sanitizers check its end
    EXPECT_LT(name(copy).size(), 128u);
  }
}

}  // namespace
}  // namespace cpprun::worker

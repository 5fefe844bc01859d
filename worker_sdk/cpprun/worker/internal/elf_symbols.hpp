// Which function of an ELF file (64 bits, this machine's byte order) holds a place in its text.
//
// Pure reading of the file's bytes: no allocation, every offset is checked, so a signal handler may
// ask it about a file that it has mapped. Functions are found in .symtab (all of them, unless the
// file is stripped), else in .dynsym.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cpprun::worker {

struct ElfPlace {
  std::string_view function;  // as the linker knows it (mangled); empty: not known
  uint64_t address = 0;       // what addr2line -e FILE wants; 0: the file does not load this place
};

// `offset` counts from the start of the file. The result points into `file`.
ElfPlace elf_place(std::span<const std::byte> file, uint64_t offset) noexcept;

// "trainer::step" of "_ZN7trainer4stepEi"; what is too intricate (operators) stays as it is.
// Parameters are left out, and so is what stands in the <> of templates. Writes to `memory` and
// gives the part that it used.
std::string_view readable_name(std::string_view mangled, std::span<char> memory) noexcept;

}  // namespace cpprun::worker

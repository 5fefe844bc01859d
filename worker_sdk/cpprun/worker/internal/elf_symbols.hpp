// Finds the function of an ELF file (64 bits, this machine's byte order) that contains an offset.
//
// Reads the bytes of the mapped file only, allocates nothing and checks every offset, so a signal
// handler may call it. Searches .symtab (all functions, unless the file is stripped), then .dynsym.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cpprun::worker {

struct ElfPlace {
  std::string_view function;  // mangled; empty: unknown
  uint64_t address = 0;       // for addr2line -e FILE; 0: the file does not load this offset
};

// `offset` counts from the start of the file. The result points into `file`.
ElfPlace elf_place(std::span<const std::byte> file, uint64_t offset) noexcept;

// "trainer::step" for "_ZN7trainer4stepEi", without parameters and template arguments. Returns
// names that it cannot parse (operators) unchanged. Writes to `memory` and returns the part that it
// used.
std::string_view readable_name(std::string_view mangled, std::span<char> memory) noexcept;

}  // namespace cpprun::worker

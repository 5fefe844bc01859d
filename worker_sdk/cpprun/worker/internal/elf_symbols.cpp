#include "cpprun/worker/internal/elf_symbols.hpp"

#include <elf.h>

#include <cstring>

namespace cpprun::worker {
namespace {

using Bytes = std::span<const std::byte>;

template <class T>
bool read_at(Bytes file, uint64_t offset, T& into) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(&into, file.data() + offset, sizeof(T));
  return true;
}

bool is_elf64(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_phentsize == sizeof(Elf64_Phdr);
}

uint64_t address_of(Bytes file, const Elf64_Ehdr& header, uint64_t offset) {
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!read_at(file, header.e_phoff + i * sizeof part, part)) return 0;
    const bool holds =
        part.p_type == PT_LOAD && offset >= part.p_offset && offset - part.p_offset < part.p_filesz;
    if (holds) return offset - part.p_offset + part.p_vaddr;
  }
  return 0;
}

// The zero-terminated text at `offset`.
std::string_view name_at(Bytes file, uint64_t offset) {
  if (offset >= file.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(file.data()) + offset;
  const void* end = std::memchr(begin, 0, file.size() - offset);
  if (end == nullptr) return {};
  return {begin, static_cast<size_t>(static_cast<const char*>(end) - begin)};
}

bool holds(const Elf64_Sym& symbol, uint64_t address) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && address >= symbol.st_value &&
         address - symbol.st_value < symbol.st_size;
}

std::string_view find_function(Bytes file, const Elf64_Shdr& table, const Elf64_Shdr& names,
                               uint64_t address) {
  for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
    Elf64_Sym symbol;
    if (!read_at(file, table.sh_offset + i * sizeof symbol, symbol)) return {};
    if (holds(symbol, address)) return name_at(file, names.sh_offset + symbol.st_name);
  }
  return {};
}

std::string_view find_in_tables(Bytes file, const Elf64_Ehdr& header, uint32_t type,
                                uint64_t address) {
  const auto section = [&](uint64_t index, Elf64_Shdr& into) {
    return index < header.e_shnum && read_at(file, header.e_shoff + index * sizeof into, into);
  };
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table;
    Elf64_Shdr names;
    if (!section(i, table)) return {};
    if (table.sh_type != type || !section(table.sh_link, names)) continue;
    const std::string_view found = find_function(file, table, names, address);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

ElfPlace elf_place(std::span<const std::byte> file, uint64_t offset) noexcept {
  Elf64_Ehdr header;
  if (!read_at(file, 0, header) || !is_elf64(header)) return {};
  ElfPlace place;
  place.address = address_of(file, header, offset);
  if (place.address == 0) return place;
  place.function = find_in_tables(file, header, SHT_SYMTAB, place.address);
  if (place.function.empty()) {
    place.function = find_in_tables(file, header, SHT_DYNSYM, place.address);
  }
  return place;
}

}  // namespace cpprun::worker

// The dtypes that a file can have. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cpprun::pickle {

struct DtypeInfo {
  std::string_view name;         // as torch spells it
  int64_t bytes;                 // per element
  std::string_view storage;      // torch's class of its storages; empty: they are untyped
  std::string_view safetensors;  // name in safetensors files; empty: they lack it
};
inline constexpr std::array<DtypeInfo, 21> kDtypes{{
    {"float64", 8, "DoubleStorage", "F64"},
    {"float32", 4, "FloatStorage", "F32"},
    {"float16", 2, "HalfStorage", "F16"},
    {"bfloat16", 2, "BFloat16Storage", "BF16"},
    {"int64", 8, "LongStorage", "I64"},
    {"int32", 4, "IntStorage", "I32"},
    {"int16", 2, "ShortStorage", "I16"},
    {"int8", 1, "CharStorage", "I8"},
    {"uint8", 1, "ByteStorage", "U8"},
    {"bool", 1, "BoolStorage", "BOOL"},
    {"complex128", 16, "ComplexDoubleStorage", ""},
    {"complex64", 8, "ComplexFloatStorage", ""},
    {"complex32", 4, "", ""},
    {"uint16", 2, "", "U16"},
    {"uint32", 4, "", "U32"},
    {"uint64", 8, "", "U64"},
    {"float8_e4m3fn", 1, "", "F8_E4M3"},
    {"float8_e5m2", 1, "", "F8_E5M2"},
    {"float8_e4m3fnuz", 1, "", ""},
    {"float8_e5m2fnuz", 1, "", ""},
    {"float8_e8m0fnu", 1, "", ""},
}};

// Null if the name is not a dtype or the dtype cannot be stored.
const DtypeInfo* find_dtype(std::string_view name);

}  // namespace cpprun::pickle

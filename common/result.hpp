// Error, Result<T> and Status: external errors as values, with a text that a user can act on.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/check.hpp"
#include "common/exit_code.hpp"

namespace cpprun {

// exit_code() maps these to exit codes.
enum class ErrorKind {
  Usage,     // the command line could not be parsed: exit 2, usage is printed
  BadValue,  // parsed, but the value makes no sense
  System,    // the operating system refused
  Network,   // a peer could not be reached or broke the connection
  Protocol,  // a peer violated the protocol
  Timeout,   // a time limit was reached
  Refused,   // the coordinator refused
};

struct Error {
  ErrorKind kind;
  std::string text;  // one or two lines that name the value and the remedy; no trailing newline
};

// Exit code of a program that ends with this error; as torchrun.
inline int exit_code(const Error& error) {
  return error.kind == ErrorKind::Usage ? kUsageError : kFailure;
}

// "what: strerror(errno_value)" as an Error of kind System.
Error system_error(const std::string& what, int errno_value);

// Either a T or an Error. Reading the wrong one is a bug in the caller and aborts the program.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}      // NOLINT: conversion is the point
  Result(Error error) : held_(std::move(error)) {}  // NOLINT

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    CPPRUN_CHECK(!ok());
    return std::get<1>(held_);
  }

 private:
  T& checked() {
    CPPRUN_CHECK(ok());
    return std::get<0>(held_);
  }

  std::variant<T, Error> held_;
};

// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    CPPRUN_CHECK(error_.has_value());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace cpprun

// Result<T>: a value, or an Error that says in one sentence what went wrong. The names are those of
// std::expected (C++23), so that it can take over one day.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace paceline {

// What kind of fault it was. The command line and the server each turn the code into a status in
// one place; nobody else needs to look at it.
enum class ErrorCode {
  BadUsage,     // a flag, a request field: the caller asked for something that makes no sense
  BadFormat,    // a file is not what it claims to be
  NotFound,     // a file or a name is not there
  Unsupported,  // well-formed, but not something this program can do
  TooLarge,     // does not fit: memory, context, a documented limit
  Io,           // the operating system refused
  Interrupted,  // the user asked to stop
};

struct Error {
  ErrorCode code = ErrorCode::BadFormat;
  std::string message;  // what was wanted, what was found, where, what to do; no full stop
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  const Error& error() const { return std::get<1>(state_); }
  T value_or(T other) const& { return has_value() ? **this : std::move(other); }

 private:
  std::variant<T, Error> state_;
};

// A step that yields nothing but may fail.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT: implicit

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace paceline

// The filters, tests, methods and functions that templates may use, and the rules of Python that
// they share with the operators.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace paceline::jinja {

// Work that a new small value counts for, since it takes far more memory than its bytes.
inline constexpr size_t kWorkPerItem = 400;
// Work that looking at one node of the template, or at one value, counts for.
inline constexpr size_t kWorkPerNode = 50;

// What one rendering may still spend, and the first thing that went wrong in it. Everything that
// computes returns some value after a failure; callers look at failed().
class Context {
 public:
  // Counts `bytes` of work; false, having failed, when the limit is passed. The limit is far
  // above what a conversation of ten megabytes takes, and stops a hostile template within a second.
  bool spend(size_t bytes);
  Value fail(ErrorCode code, std::string_view message);  // at the current line
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  int line = 1;  // of what is being evaluated

 protected:
  void fail_with(Error error);

 private:
  static constexpr uint64_t kMaxWork = 100'000'000;
  uint64_t work_ = 0;
  std::optional<Error> error_;
};

inline constexpr size_t kMaxParams = 3;

// Arguments in the order of the parameters; empty where none was given.
using Args = std::array<std::optional<Value>, kMaxParams>;

struct Builtin {
  std::string_view name;
  std::array<std::string_view, kMaxParams> params;  // names; "" ends the list
  int n_required;
  Value (*call)(Context& context, const Value& subject, const Args& args);

  int n_params() const;
};

// Null when there is none of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_string_method(std::string_view name);
const Builtin* find_dict_method(std::string_view name);
const Builtin* find_function(std::string_view name);  // called with an undefined subject

// What is wrong with a call's form, before it is made; empty if nothing.
std::string misfit(const Builtin& builtin, const Expr& call);

// str(value) and repr(value) of Python.
Text to_text(Context& context, const Value& value);
Text to_repr(Context& context, const Value& value);
// json.dumps(value, ensure_ascii=False); indent < 0: on one line.
Text to_json(Context& context, const Value& value, int indent);

bool equal(Context& context, const Value& a, const Value& b);
Value binary(Context& context, Op op, const Value& a, const Value& b);
bool compare(Context& context, Op op, const Value& a, const Value& b);

// obj[key] and obj.key; Undefined where there is nothing.
Value subscript(Context& context, const Value& object, const Value& key);
Value slice(Context& context, const Value& object, const std::optional<int64_t> (&bounds)[3]);
// The items of a list, the keys of a mapping, the characters of a string, nothing of undefined.
std::shared_ptr<const List> iterate(Context& context, const Value& value);

// Containers, depth checked.
Value make_list(Context& context, std::vector<Value> items, bool is_tuple = false);
Value make_dict(Context& context, Dict entries);

}  // namespace paceline::jinja

// The expressions of a chat template, by recursive descent; the base of the parser of its tags.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace paceline::jinja {

class ExprParser {
 public:
  explicit ExprParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)];
  }
  // The current token; the last, which is End, is never passed.
  const Token& next() {
    const Token& token = peek();
    if (pos_ + 1 < tokens_.size()) ++pos_;
    return token;
  }
  bool skip(Lex kind, std::string_view text);
  bool skip_op(std::string_view text) { return skip(Lex::Op, text); }
  bool skip_name(std::string_view text) { return skip(Lex::Name, text); }

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  void fail(std::string_view message) { fail(ErrorCode::BadFormat, message); }
  void fail(ErrorCode code, std::string_view message);

  // One expression, or several with commas between them as a tuple. with_if: whether the form
  // "a if b else c" is taken.
  ExprPtr parse_tuple(bool with_if = true);
  ExprPtr parse_expression();

  // A name that the template gives a value to, so that calling it may make sense.
  void assigned(const std::string& name) { assigned_.insert(name); }
  // Fails when a function is called that is neither known nor assigned anywhere.
  void check_functions();

 private:
  ExprPtr make(ExprKind kind) const;
  // Finishes a node: its depth is one more than its deepest child's.
  ExprPtr done(ExprPtr expr);

  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_binary(int level);
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_string();
  ExprPtr parse_number();
  ExprPtr parse_items(std::string_view close, ExprKind kind);
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr expr);
  ExprPtr parse_index(ExprPtr object);
  ExprPtr parse_filters(ExprPtr expr);
  ExprPtr parse_filter(ExprPtr subject);
  ExprPtr parse_test(ExprPtr subject);
  void parse_args(Expr& call);
  void check_method(const Expr& call);

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
  std::set<std::string> assigned_;
  std::vector<std::pair<std::string, int>> called_;  // functions not known, with their lines
};

}  // namespace paceline::jinja

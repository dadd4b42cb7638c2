#include "text/jinja_expr_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "text/jinja_builtins.h"

namespace paceline::jinja {

namespace {

struct OpName {
  std::string_view text;
  Op op;
};

// Operators by how tightly they bind, loosest first; each level is taken from the left.
constexpr OpName kSums[] = {{"+", Op::Add}, {"-", Op::Sub}};
constexpr OpName kConcats[] = {{"~", Op::Concat}};
constexpr OpName kProducts[] = {
    {"*", Op::Mul}, {"/", Op::Div}, {"//", Op::FloorDiv}, {"%", Op::Mod}};
constexpr std::span<const OpName> kLevels[] = {kSums, kConcats, kProducts};

constexpr OpName kComparisons[] = {{"==", Op::Eq}, {"!=", Op::Ne}, {"<", Op::Lt},
                                   {"<=", Op::Le}, {">", Op::Gt},  {">=", Op::Ge}};

// Deeper than kMaxDepth allows, kept for as long as it takes to unwind.
class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  int& depth_;
};

}  // namespace

bool ExprParser::skip(Lex kind, std::string_view text) {
  if (peek().kind != kind || peek().text != text) return false;
  next();
  return true;
}

void ExprParser::fail(ErrorCode code, std::string_view message) {
  if (!error_) error_ = at_line(code, peek().line, message);
}

void ExprParser::check_functions() {
  for (const auto& [name, line] : called_) {
    if (error_ || assigned_.contains(name)) continue;
    error_ =
        at_line(ErrorCode::Unsupported, line, fmt::format("no function is named \"{}\"", name));
  }
}

ExprPtr ExprParser::make(ExprKind kind) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = peek().line;
  return expr;
}

ExprPtr ExprParser::done(ExprPtr expr) {
  const auto grow = [&](const ExprPtr& child) {
    if (child) expr->depth = std::max(expr->depth, child->depth + 1);
  };
  for (const auto& child : expr->children) grow(child);
  for (const auto& child : expr->args) grow(child);
  for (const auto& child : expr->named_args) grow(child.second);
  if (expr->depth > kMaxDepth)
    fail(ErrorCode::TooLarge, fmt::format("an expression is nested deeper than {}", kMaxDepth));
  // Freed at once when too deep, so that no node stays whose freeing would recurse further.
  return failed() ? make(ExprKind::Literal) : std::move(expr);
}

ExprPtr ExprParser::parse_tuple(bool with_if) {
  const auto item = [&] { return with_if ? parse_expression() : parse_or(); };
  ExprPtr first = item();
  if (peek().kind != Lex::Op || peek().text != ",") return first;
  ExprPtr tuple = make(ExprKind::List);
  tuple->tuple = true;
  tuple->children.push_back(std::move(first));
  while (!failed() && skip_op(",")) {
    if (peek().kind == Lex::TagEnd || peek().kind == Lex::OutEnd) break;
    tuple->children.push_back(item());
  }
  return done(std::move(tuple));
}

ExprPtr ExprParser::parse_expression() {
  const DepthGuard guard(depth_);
  if (depth_ > kMaxDepth) {
    fail(ErrorCode::TooLarge, fmt::format("an expression is nested deeper than {}", kMaxDepth));
    return make(ExprKind::Literal);
  }
  ExprPtr expr = parse_or();
  while (!failed() && skip_name("if")) {
    ExprPtr choice = make(ExprKind::If);
    choice->children.push_back(std::move(expr));
    choice->children.push_back(parse_or());
    choice->children.push_back(skip_name("else") ? parse_expression() : nullptr);
    expr = done(std::move(choice));
  }
  return expr;
}

ExprPtr ExprParser::parse_or() {
  ExprPtr first = parse_and();
  if (peek().kind != Lex::Name || peek().text != "or") return first;
  ExprPtr expr = make(ExprKind::Or);
  expr->children.push_back(std::move(first));
  while (!failed() && skip_name("or")) expr->children.push_back(parse_and());
  return done(std::move(expr));
}

ExprPtr ExprParser::parse_and() {
  ExprPtr first = parse_not();
  if (peek().kind != Lex::Name || peek().text != "and") return first;
  ExprPtr expr = make(ExprKind::And);
  expr->children.push_back(std::move(first));
  while (!failed() && skip_name("and")) expr->children.push_back(parse_not());
  return done(std::move(expr));
}

ExprPtr ExprParser::parse_not() {
  if (peek().kind != Lex::Name || peek().text != "not") return parse_compare();
  ExprPtr expr = make(ExprKind::Not);
  next();
  const DepthGuard guard(depth_);
  if (depth_ > kMaxDepth) {
    fail(ErrorCode::TooLarge, fmt::format("an expression is nested deeper than {}", kMaxDepth));
    return expr;
  }
  expr->children.push_back(parse_not());
  return done(std::move(expr));
}

ExprPtr ExprParser::parse_compare() {
  ExprPtr first = parse_binary(0);
  ExprPtr expr = make(ExprKind::Compare);
  const auto read_op = [&]() -> std::optional<Op> {
    if (peek().kind == Lex::Op) {
      for (const OpName& o : kComparisons)
        if (skip_op(o.text)) return o.op;
    } else if (skip_name("in")) {
      return Op::In;
    } else if (peek().text == "not" && peek(1).text == "in" && peek(1).kind == Lex::Name &&
               skip_name("not")) {
      next();
      return Op::NotIn;
    }
    return std::nullopt;
  };
  while (!failed()) {
    const auto op = read_op();
    if (!op) break;
    expr->ops.push_back(*op);
    if (first) expr->children.push_back(std::move(first));
    expr->children.push_back(parse_binary(0));
  }
  return expr->ops.empty() && first ? std::move(first) : done(std::move(expr));
}

ExprPtr ExprParser::parse_binary(int level) {
  if (level == 3) return parse_power();
  ExprPtr first = parse_binary(level + 1);
  ExprPtr expr = make(ExprKind::Binary);
  bool more = true;
  while (!failed() && more) {
    more = false;
    for (const OpName& o : kLevels[level]) {
      if (peek().kind != Lex::Op || peek().text != o.text) continue;
      next();
      expr->ops.push_back(o.op);
      if (first) expr->children.push_back(std::move(first));
      expr->children.push_back(parse_binary(level + 1));
      more = true;
      break;
    }
  }
  return expr->ops.empty() && first ? std::move(first) : done(std::move(expr));
}

ExprPtr ExprParser::parse_power() {
  ExprPtr first = parse_unary(true);
  ExprPtr expr = make(ExprKind::Binary);
  while (!failed() && skip_op("**")) {
    expr->ops.push_back(Op::Pow);
    if (first) expr->children.push_back(std::move(first));
    expr->children.push_back(parse_unary(true));
  }
  return expr->ops.empty() && first ? std::move(first) : done(std::move(expr));
}

ExprPtr ExprParser::parse_unary(bool with_filters) {
  const DepthGuard guard(depth_);
  if (depth_ > kMaxDepth) {
    fail(ErrorCode::TooLarge, fmt::format("an expression is nested deeper than {}", kMaxDepth));
    return make(ExprKind::Literal);
  }
  ExprPtr expr;
  if (peek().kind == Lex::Op && (peek().text == "-" || peek().text == "+")) {
    expr = make(peek().text == "-" ? ExprKind::Negate : ExprKind::Plus);
    next();
    expr->children.push_back(parse_unary(false));
    expr = done(std::move(expr));
  } else {
    expr = parse_primary();
  }
  expr = parse_postfix(std::move(expr));
  return with_filters ? parse_filters(std::move(expr)) : std::move(expr);
}

ExprPtr ExprParser::parse_primary() {
  switch (peek().kind) {
    case Lex::Name:
      return parse_name();
    case Lex::String:
      return parse_string();
    case Lex::Int:
    case Lex::Float:
      return parse_number();
    case Lex::Op:
      if (skip_op("(")) {
        if (peek().text != ")" || peek().kind != Lex::Op) {
          ExprPtr inner = parse_expression();
          if (skip_op(")")) return inner;
          ExprPtr tuple = make(ExprKind::List);
          tuple->tuple = true;
          tuple->children.push_back(std::move(inner));
          while (!failed() && skip_op(","))
            if (peek().text != ")" || peek().kind != Lex::Op)
              tuple->children.push_back(parse_expression());
          if (!skip_op(")")) fail("a bracket ( is not closed");
          return done(std::move(tuple));
        }
        ExprPtr tuple = make(ExprKind::List);
        tuple->tuple = true;
        next();
        return tuple;
      }
      if (skip_op("[")) return parse_items("]", ExprKind::List);
      if (skip_op("{")) return parse_dict();
      break;
    default:
      break;
  }
  fail(peek().kind == Lex::Op ? fmt::format("\"{}\" stands where a value should", peek().text)
                              : std::string("a value is missing"));
  return make(ExprKind::Literal);
}

ExprPtr ExprParser::parse_name() {
  ExprPtr expr = make(ExprKind::Literal);
  const std::string name = next().text;
  if (name == "true" || name == "True") return expr->value = true, std::move(expr);
  if (name == "false" || name == "False") return expr->value = false, std::move(expr);
  if (name == "none" || name == "None") return expr->value = None{}, std::move(expr);
  for (std::string_view word : {"and", "or", "not", "in", "is", "if", "else"})
    if (name == word) {
      fail(fmt::format("\"{}\" stands where a value should", name));
      return expr;
    }
  expr->name = name;
  if (peek().kind != Lex::Op || peek().text != "(") {
    expr->kind = ExprKind::Name;
    return expr;
  }
  expr->kind = ExprKind::Function;
  parse_args(*expr);
  if (const Builtin* function = find_function(name)) {
    if (const std::string wrong = misfit(*function, *expr); !wrong.empty()) fail(wrong);
  } else if (name != "namespace" && name != "dict") {
    called_.emplace_back(name, expr->line);
  }
  return done(std::move(expr));
}

ExprPtr ExprParser::parse_string() {
  ExprPtr expr = make(ExprKind::Literal);
  std::string text;
  while (peek().kind == Lex::String) text += next().text;
  expr->value = Text(std::move(text));
  return expr;
}

ExprPtr ExprParser::parse_number() {
  ExprPtr expr = make(ExprKind::Literal);
  const bool is_int = peek().kind == Lex::Int;
  const std::string& text = next().text;
  std::from_chars_result read = {};
  if (is_int) {
    int64_t value = 0;
    read = std::from_chars(text.data(), text.data() + text.size(), value);
    expr->value = value;
  } else {
    double value = 0;
    read = std::from_chars(text.data(), text.data() + text.size(), value);
    expr->value = value;
  }
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    fail(fmt::format("the number {} is too large", text.substr(0, 40)));
  return expr;
}

ExprPtr ExprParser::parse_items(std::string_view close, ExprKind kind) {
  ExprPtr expr = make(kind);
  while (!failed() && !skip_op(close)) {
    if (!expr->children.empty() && !skip_op(",")) {
      fail(fmt::format("\"{}\" is missing", close));
      break;
    }
    if (skip_op(close)) break;
    expr->children.push_back(parse_expression());
  }
  return done(std::move(expr));
}

ExprPtr ExprParser::parse_dict() {
  ExprPtr expr = make(ExprKind::Dict);
  while (!failed() && !skip_op("}")) {
    if (!expr->children.empty() && !skip_op(",")) {
      fail("\"}\" is missing");
      break;
    }
    if (skip_op("}")) break;
    expr->children.push_back(parse_expression());
    if (!skip_op(":")) fail("a key of a mapping is followed by \":\"");
    expr->children.push_back(parse_expression());
  }
  return done(std::move(expr));
}

ExprPtr ExprParser::parse_postfix(ExprPtr expr) {
  while (!failed() && peek().kind == Lex::Op) {
    if (peek().text == "(") {
      fail(ErrorCode::Unsupported, "only functions, macros and methods can be called");
    } else if (skip_op("[")) {
      expr = parse_index(std::move(expr));
    } else if (skip_op(".")) {
      ExprPtr member = make(ExprKind::Member);
      member->children.push_back(std::move(expr));
      if (peek().kind == Lex::Int) {
        member->kind = ExprKind::Index;
        member->children.push_back(parse_number());
      } else if (peek().kind == Lex::Name) {
        member->name = next().text;
        if (peek().kind == Lex::Op && peek().text == "(") {
          member->kind = ExprKind::Method;
          parse_args(*member);
          check_method(*member);
        }
      } else {
        fail("a member's name is missing behind \".\"");
      }
      expr = done(std::move(member));
    } else {
      break;
    }
  }
  return expr;
}

void ExprParser::check_method(const Expr& call) {
  if (call.name == "cycle") return;  // of a loop; takes any number of arguments
  const Builtin* of_string = find_string_method(call.name);
  const Builtin* of_dict = find_dict_method(call.name);
  if (!of_string && !of_dict)
    return fail(ErrorCode::Unsupported, fmt::format("no method is named \"{}\"", call.name));
  const std::string wrong = misfit(of_string ? *of_string : *of_dict, call);
  if (!wrong.empty()) fail(wrong);
}

ExprPtr ExprParser::parse_index(ExprPtr object) {
  ExprPtr expr = make(ExprKind::Index);
  expr->children.push_back(std::move(object));
  const auto at = [this](std::string_view op) {
    return peek().kind == Lex::Op && peek().text == op;
  };
  if (!at(":")) expr->children.push_back(parse_expression());
  if (at(":")) {
    expr->kind = ExprKind::Slice;
    if (expr->children.size() == 1) expr->children.push_back(nullptr);
    while (expr->children.size() < 4 && skip_op(":"))
      expr->children.push_back(at(":") || at("]") ? nullptr : parse_expression());
    while (expr->children.size() < 4) expr->children.push_back(nullptr);
  }
  if (!skip_op("]")) fail("\"]\" is missing");
  return done(std::move(expr));
}

ExprPtr ExprParser::parse_filters(ExprPtr expr) {
  while (!failed()) {
    if (skip_op("|"))
      expr = parse_filter(std::move(expr));
    else if (skip_name("is"))
      expr = parse_test(std::move(expr));
    else
      break;
  }
  return expr;
}

ExprPtr ExprParser::parse_filter(ExprPtr subject) {
  ExprPtr expr = make(ExprKind::Filter);
  expr->children.push_back(std::move(subject));
  if (peek().kind != Lex::Name)
    return fail("a filter's name is missing behind \"|\""), std::move(expr);
  expr->name = peek().text;
  const Builtin* filter = find_filter(expr->name);
  if (!filter) {
    fail(ErrorCode::Unsupported, fmt::format("no filter is named \"{}\"", expr->name));
    return expr;
  }
  next();
  if (peek().kind == Lex::Op && peek().text == "(") parse_args(*expr);
  if (const std::string wrong = misfit(*filter, *expr); !wrong.empty()) fail(wrong);
  return done(std::move(expr));
}

ExprPtr ExprParser::parse_test(ExprPtr subject) {
  const bool negated = skip_name("not");
  ExprPtr expr = make(ExprKind::Test);
  expr->children.push_back(std::move(subject));
  if (peek().kind == Lex::Op && (peek().text == "==" || peek().text == "!="))
    fail("a test's name is missing behind \"is\"");
  expr->name = peek().text;
  const Builtin* test = find_test(expr->name);
  if (!test || peek().kind != Lex::Name) {
    fail(ErrorCode::Unsupported, fmt::format("no test is named \"{}\"", expr->name));
    return expr;
  }
  next();
  if (peek().kind == Lex::Op && peek().text == "(") {
    parse_args(*expr);
  } else if (test->n_required > 0) {  // one argument may stand without brackets
    expr->args.push_back(parse_postfix(parse_primary()));
  }
  if (const std::string wrong = misfit(*test, *expr); !wrong.empty()) fail(wrong);
  expr = done(std::move(expr));
  if (!negated) return expr;
  ExprPtr inverse = make(ExprKind::Not);
  inverse->children.push_back(std::move(expr));
  return done(std::move(inverse));
}

void ExprParser::parse_args(Expr& call) {
  next();  // (
  bool first = true;
  while (!failed() && !skip_op(")")) {
    if (!first && !skip_op(",")) return fail("\")\" is missing");
    if (!first && skip_op(")")) return;
    first = false;
    if (peek().kind == Lex::Name && peek(1).kind == Lex::Op && peek(1).text == "=") {
      const std::string name = next().text;
      next();
      call.named_args.emplace_back(name, parse_expression());
    } else {
      if (!call.named_args.empty()) return fail("an argument without name follows a named one");
      call.args.push_back(parse_expression());
    }
  }
}

}  // namespace paceline::jinja

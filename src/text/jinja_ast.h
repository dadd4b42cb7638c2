// A parsed chat template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace paceline::jinja {

// Nesting of expressions and of tags. Parsing, evaluating and freeing recurse no deeper.
inline constexpr int kMaxDepth = 100;

enum class ExprKind {
  Literal,
  Name,
  List,      // children: items; `tuple` for (a, b)
  Dict,      // children: key, value, key, value ...
  Member,    // children[0].name
  Index,     // children[0][children[1]]
  Slice,     // children[0][children[1]:children[2]:children[3]], each but the first may be null
  Function,  // name(args)
  Method,    // children[0].name(args)
  Filter,    // children[0] | name(args)
  Test,      // children[0] is name(args)
  Not,
  Negate,
  Plus,
  And,      // all children
  Or,       // all children
  Binary,   // children[0] ops[0] children[1] ops[1] children[2] ..., from the left
  Compare,  // the same, each pair compared
  If,       // children[0] if children[1] else children[2], which may be null
};

enum class Op { Add, Sub, Mul, Div, FloorDiv, Mod, Pow, Concat, Eq, Ne, Lt, Le, Gt, Ge, In, NotIn };

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  ExprKind kind = ExprKind::Literal;
  int line = 1;
  int depth = 1;
  std::string name;
  Value value;
  bool tuple = false;
  std::vector<ExprPtr> children;
  std::vector<Op> ops;
  std::vector<ExprPtr> args;
  std::vector<std::pair<std::string, ExprPtr>> named_args;
};

enum class StmtKind {
  Data,       // text
  Output,     // {{ expr }}
  If,         // conditions[i] guards bodies[i]; one body more: else
  For,        // bodies[0], and bodies[1] for else
  Set,        // names = expr
  SetMember,  // names[0].names[1] = expr
  SetBlock,   // names[0] = what bodies[0] writes
  Macro,
  Break,
  Continue,
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct MacroDef {
  std::string name;
  std::vector<std::string> params;
  std::vector<ExprPtr> defaults;  // of each parameter; null where it has none
  Body body;
};

struct Stmt {
  StmtKind kind = StmtKind::Data;
  int line = 1;
  Text text;
  std::vector<std::string> names;
  ExprPtr expr;
  ExprPtr filter;  // for x in expr if filter
  std::vector<ExprPtr> conditions;
  std::vector<Body> bodies;
  std::unique_ptr<MacroDef> macro;
};

}  // namespace paceline::jinja

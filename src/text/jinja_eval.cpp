#include "text/jinja_eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/jinja_builtins.h"

namespace paceline::jinja {

namespace {

constexpr int kMaxCallDepth = 400;  // nested evaluations, calls of macros included

class Evaluator : public Context {
 public:
  explicit Evaluator(const Dict& globals) : frames_(1) {
    for (const auto& [name, value] : globals.entries) frames_[0].emplace_back(name, value);
  }

  Result<Text> run(const Body& body) {
    execute(body);
    if (failed()) return error();
    return std::move(out_);
  }

 private:
  enum class Flow { Next, Break, Continue };
  using Frame = std::vector<std::pair<std::string_view, Value>>;

  // A variable is looked up in the innermost frame first; a macro sees its own frames and the
  // outermost one.
  Value lookup(std::string_view name) {
    for (size_t i = frames_.size(); i-- > 0;) {
      if (i < macro_base_) i = 0;
      for (const auto& [known, value] : frames_[i])
        if (known == name) return value;
    }
    return Undefined{std::string(name)};
  }
  void assign(std::string_view name, Value value) {
    for (auto& [known, old] : frames_.back())
      if (known == name) {
        old = std::move(value);
        return;
      }
    if (spend(frames_.back().size())) frames_.back().emplace_back(name, std::move(value));
  }
  // Several names take the items of a list.
  void assign_names(const std::vector<std::string>& names, const Value& value) {
    if (names.size() == 1) return assign(names[0], value);
    const auto items = iterate(*this, value);
    if (failed()) return;
    if (items->items.size() != names.size()) {
      fail(ErrorCode::BadFormat,
           fmt::format("{} values for {} names", items->items.size(), names.size()));
      return;
    }
    for (size_t i = 0; i < names.size(); ++i) assign(names[i], items->items[i]);
  }

  class Depth {
   public:
    explicit Depth(Evaluator& e) : e_(e) {
      if (++e_.depth_ > kMaxCallDepth) e_.fail(ErrorCode::TooLarge, "macros call too deep");
    }
    ~Depth() { --e_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Evaluator& e_;
  };

  // --- statements ---

  Flow execute(const Body& body) {
    const Depth guard(*this);
    for (const auto& stmt : body) {
      line = stmt->line;
      if (!spend(kWorkPerNode)) return Flow::Break;
      const Flow flow = execute(*stmt);
      if (failed()) return Flow::Break;
      if (flow != Flow::Next) return flow;
    }
    return Flow::Next;
  }

  Flow execute(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::Data:
        write(stmt.text);
        break;
      case StmtKind::Output:
        write(to_text(*this, evaluate(*stmt.expr)));
        break;
      case StmtKind::If:
        return execute_if(stmt);
      case StmtKind::For:
        execute_for(stmt);
        break;
      case StmtKind::Set:
        assign_names(stmt.names, evaluate(*stmt.expr));
        break;
      case StmtKind::SetMember:
        set_member(stmt);
        break;
      case StmtKind::SetBlock:
        assign(stmt.names[0], capture(stmt.bodies[0]));
        break;
      case StmtKind::Macro:
        assign(stmt.macro->name, Value(static_cast<const MacroDef*>(stmt.macro.get())));
        break;
      case StmtKind::Break:
        return Flow::Break;
      case StmtKind::Continue:
        return Flow::Continue;
    }
    return Flow::Next;
  }

  void write(const Text& text) {
    if (!failed() && spend(text.size())) out_.append(text);
  }
  Text capture(const Body& body) {
    Text outer = std::move(out_);
    out_ = Text();
    execute(body);
    Text inner = std::move(out_);
    out_ = std::move(outer);
    return inner;
  }

  Flow execute_if(const Stmt& stmt) {
    for (size_t i = 0; i < stmt.conditions.size(); ++i) {
      const bool holds = is_true(evaluate(*stmt.conditions[i]));
      if (failed()) return Flow::Break;
      if (holds) return execute(stmt.bodies[i]);
    }
    const bool has_else = stmt.bodies.size() > stmt.conditions.size();
    return has_else ? execute(stmt.bodies.back()) : Flow::Next;
  }

  void execute_for(const Stmt& stmt) {
    auto items = iterate(*this, evaluate(*stmt.expr));
    if (failed()) return;
    if (stmt.filter) {
      auto kept = std::make_shared<List>();
      frames_.emplace_back();
      for (const Value& item : items->items) {
        assign_names(stmt.names, item);
        if (is_true(evaluate(*stmt.filter)) && !failed()) kept->items.push_back(item);
        if (failed()) break;
      }
      frames_.pop_back();
      items = std::move(kept);
    }
    if (items->items.empty() && stmt.bodies.size() > 1 && !failed()) {
      frames_.emplace_back();
      execute(stmt.bodies[1]);
      frames_.pop_back();
    }
    for (size_t i = 0; i < items->items.size() && !failed(); ++i) {
      frames_.emplace_back();  // what the body sets ends with the turn
      assign_names(stmt.names, items->items[i]);
      auto loop = std::make_shared<Loop>();
      loop->items = items;
      loop->index0 = static_cast<int64_t>(i);
      assign("loop", std::shared_ptr<const Loop>(std::move(loop)));
      const Flow flow = spend(kWorkPerItem) ? execute(stmt.bodies[0]) : Flow::Break;
      frames_.pop_back();
      if (flow == Flow::Break) break;
    }
  }

  void set_member(const Stmt& stmt) {
    const Value target = lookup(stmt.names[0]);
    const Value value = evaluate(*stmt.expr);
    if (failed()) return;
    line = stmt.line;
    Dict* const members = target.name_space();
    if (!members)
      fail(ErrorCode::BadFormat, fmt::format("\"{}\" is no namespace", stmt.names[0]));
    else if (value.is_namespace() || value.loop())
      fail(ErrorCode::Unsupported, "a namespace cannot be kept inside another value");
    else if (spend(members->entries.size()))
      members->set(stmt.names[1], value);
  }

  // --- expressions ---

  Value evaluate(const Expr& expr) {
    const Depth guard(*this);
    line = expr.line;
    if (!spend(kWorkPerNode)) return {};
    switch (expr.kind) {
      case ExprKind::Literal:
        return expr.value;
      case ExprKind::Name:
        return lookup(expr.name);
      case ExprKind::List:
        return make_list(*this, evaluate_all(expr.children), expr.tuple);
      case ExprKind::Dict:
        return evaluate_dict(expr);
      case ExprKind::Member: {
        const Value object = evaluate(*expr.children[0]);
        return failed() ? Value() : subscript(*this, object, Text(expr.name));
      }
      case ExprKind::Index: {
        const Value object = evaluate(*expr.children[0]);
        const Value key = evaluate(*expr.children[1]);
        return failed() ? Value() : subscript(*this, object, key);
      }
      case ExprKind::Slice:
        return evaluate_slice(expr);
      case ExprKind::Function:
        return call_function(expr);
      case ExprKind::Method:
        return call_method(expr);
      case ExprKind::Filter:
        return call_builtin(*find_filter(expr.name), evaluate(*expr.children[0]), expr);
      case ExprKind::Test:
        if (expr.name == "defined" && names_function(*expr.children[0])) return true;
        if (expr.name == "undefined" && names_function(*expr.children[0])) return false;
        return call_builtin(*find_test(expr.name), evaluate(*expr.children[0]), expr);
      case ExprKind::Not:
        return !is_true(evaluate(*expr.children[0]));
      case ExprKind::Negate:
        return sign(expr, Op::Sub);
      case ExprKind::Plus:
        return sign(expr, Op::Add);
      case ExprKind::And:
      case ExprKind::Or:
        return evaluate_logic(expr);
      case ExprKind::Binary:
        return evaluate_binary(expr);
      case ExprKind::Compare:
        return evaluate_compare(expr);
      case ExprKind::If:
        if (is_true(evaluate(*expr.children[1]))) return evaluate(*expr.children[0]);
        if (expr.children[2]) return evaluate(*expr.children[2]);
        return Undefined{"the missing else of an inline if"};
    }
    return {};
  }

  std::vector<Value> evaluate_all(const std::vector<ExprPtr>& exprs) {
    std::vector<Value> values;
    values.reserve(exprs.size());
    for (const auto& expr : exprs) values.push_back(evaluate(*expr));
    return values;
  }

  Value evaluate_dict(const Expr& expr) {
    Dict dict;
    for (size_t i = 0; i < expr.children.size() && !failed(); i += 2) {
      const Value key = evaluate(*expr.children[i]);
      if (!key.text())
        return fail(ErrorCode::Unsupported, "only strings are keys of mappings here");
      if (spend(dict.entries.size())) dict.set(key.text()->bytes, evaluate(*expr.children[i + 1]));
    }
    return failed() ? Value() : make_dict(*this, std::move(dict));
  }

  Value evaluate_slice(const Expr& expr) {
    const Value object = evaluate(*expr.children[0]);
    std::optional<int64_t> bounds[3];
    for (size_t i = 0; i < 3; ++i) {
      if (!expr.children[i + 1]) continue;
      const Value bound = evaluate(*expr.children[i + 1]);
      int64_t value = 0;
      if (bound.is_none()) continue;
      if (!bound.integer(value)) return fail(ErrorCode::BadFormat, "a slice wants integers");
      bounds[i] = value;
    }
    line = expr.line;
    return failed() ? Value() : slice(*this, object, bounds);
  }

  Value sign(const Expr& expr, Op op) {
    const Value operand = evaluate(*expr.children[0]);
    line = expr.line;
    if (failed()) return {};
    if (!operand.is_number())
      return fail(ErrorCode::BadFormat, fmt::format("a sign before {}", type_name(operand)));
    if (operand.is<double>()) return op == Op::Sub ? -operand.number() : operand.number();
    return binary(*this, op, int64_t{0}, operand);
  }

  // The value that decides, as Python has it.
  Value evaluate_logic(const Expr& expr) {
    Value value;
    for (const auto& child : expr.children) {
      value = evaluate(*child);
      if (failed() || is_true(value) != (expr.kind == ExprKind::And)) break;
    }
    return value;
  }

  Value evaluate_binary(const Expr& expr) {
    Value value = evaluate(*expr.children[0]);
    for (size_t i = 0; i < expr.ops.size() && !failed(); ++i) {
      const Value right = evaluate(*expr.children[i + 1]);
      line = expr.line;
      if (!failed()) value = binary(*this, expr.ops[i], value, right);
    }
    return value;
  }

  Value evaluate_compare(const Expr& expr) {
    Value left = evaluate(*expr.children[0]);
    for (size_t i = 0; i < expr.ops.size(); ++i) {
      Value right = evaluate(*expr.children[i + 1]);
      line = expr.line;
      if (failed() || !compare(*this, expr.ops[i], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  // --- calls ---

  Value call_builtin(const Builtin& builtin, const Value& subject, const Expr& call) {
    Args args;
    for (size_t i = 0; i < call.args.size() && !failed(); ++i) args[i] = evaluate(*call.args[i]);
    for (const auto& [name, expr] : call.named_args) {
      if (failed()) break;
      const auto at = std::find(builtin.params.begin(), builtin.params.end(), name);
      args[static_cast<size_t>(at - builtin.params.begin())] = evaluate(*expr);
    }
    line = call.line;
    return failed() ? Value() : builtin.call(*this, subject, args);
  }

  Value call_method(const Expr& call) {
    const Value object = evaluate(*call.children[0]);
    line = call.line;
    if (failed()) return {};
    if (call.name == "cycle" && object.loop()) {
      if (call.args.empty()) return fail(ErrorCode::BadFormat, "cycle wants values");
      return evaluate(*call.args[static_cast<size_t>(object.loop()->index0) % call.args.size()]);
    }
    const Builtin* method = object.text()   ? find_string_method(call.name)
                            : object.dict() ? find_dict_method(call.name)
                                            : nullptr;
    if (!method)
      return fail(ErrorCode::BadFormat,
                  fmt::format("{} has no method \"{}\"", type_name(object), call.name));
    return call_builtin(*method, object, call);
  }

  Value call_function(const Expr& call) {
    const Value value = lookup(call.name);
    if (const auto* macro = std::get_if<const MacroDef*>(&value.data))
      return call_macro(**macro, call);
    if (!value.is_undefined())
      return fail(ErrorCode::BadFormat, fmt::format("\"{}\" is no function", call.name));
    if (call.name == "namespace" || call.name == "dict") return call_dict(call);
    const Builtin* function = find_function(call.name);
    if (!function) return fail(ErrorCode::BadFormat, fmt::format("\"{}\" is undefined", call.name));
    return call_builtin(*function, {}, call);
  }

  // Whether a bare name is that of a function and of no variable: functions are no values here, but
  // templates ask whether the renderer has them.
  bool names_function(const Expr& expr) {
    if (expr.kind != ExprKind::Name || !lookup(expr.name).is_undefined()) return false;
    return find_function(expr.name) != nullptr || expr.name == "namespace" || expr.name == "dict";
  }

  Value call_dict(const Expr& call) {
    Dict dict;
    for (const auto& arg : call.args) {
      const Value from = evaluate(*arg);
      if (!from.dict())
        return fail(ErrorCode::BadFormat, fmt::format("{} wants a mapping", call.name));
      dict = *from.dict();
      spend(dict.entries.size() * sizeof(Value));
    }
    for (const auto& [name, expr] : call.named_args) {
      dict.set(name, evaluate(*expr));
      if (!spend(dict.entries.size())) return {};
    }
    line = call.line;
    Value made = make_dict(*this, std::move(dict));
    if (failed() || call.name == "dict") return made;
    return std::make_shared<Dict>(*made.dict());
  }

  Value call_macro(const MacroDef& macro, const Expr& call) {
    if (call.args.size() > macro.params.size())
      return fail(ErrorCode::BadFormat,
                  fmt::format("{} takes {} arguments", macro.name, macro.params.size()));
    std::vector<Value> values = evaluate_all(call.args);
    values.resize(macro.params.size());
    std::vector<bool> given(macro.params.size());
    std::fill_n(given.begin(), call.args.size(), true);
    for (const auto& [name, expr] : call.named_args) {
      const auto at = std::find(macro.params.begin(), macro.params.end(), name);
      if (at == macro.params.end())
        return fail(ErrorCode::BadFormat,
                    fmt::format("{} has no parameter \"{}\"", macro.name, name));
      const auto i = static_cast<size_t>(at - macro.params.begin());
      values[i] = evaluate(*expr);
      given[i] = true;
    }
    if (failed()) return {};

    const size_t outer_base = std::exchange(macro_base_, frames_.size());
    frames_.emplace_back();
    for (size_t i = 0; i < values.size() && !failed(); ++i) {
      if (!given[i] && macro.defaults[i]) values[i] = evaluate(*macro.defaults[i]);
      if (!given[i] && !macro.defaults[i]) values[i] = Undefined{macro.params[i]};
      assign(macro.params[i], values[i]);
    }
    Text text = capture(macro.body);
    frames_.resize(macro_base_);
    macro_base_ = outer_base;
    line = call.line;
    return text;
  }

  std::vector<Frame> frames_;
  size_t macro_base_ = 0;  // the first frame of the macro that runs
  int depth_ = 0;
  Text out_;
};

}  // namespace

Result<Text> render(const Body& body, const Dict& globals) { return Evaluator(globals).run(body); }

}  // namespace paceline::jinja

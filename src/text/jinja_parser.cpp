#include "text/jinja_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja_expr_parser.h"

namespace paceline::jinja {

namespace {

class Parser : public ExprParser {
 public:
  using ExprParser::ExprParser;

  Result<Body> run() {
    Body body = parse_body({});
    if (!failed() && peek().kind != Lex::End) fail("this tag closes nothing");
    check_functions();
    if (failed()) return error();
    return body;
  }

 private:
  using Stop = std::initializer_list<std::string_view>;

  // Statements up to a tag whose name is among `stop`, which is not consumed, or to the end.
  Body parse_body(Stop stop) {
    Body body;
    if (++tag_depth_ > kMaxDepth) fail(fmt::format("tags are nested deeper than {}", kMaxDepth));
    while (!failed() && peek().kind != Lex::End) {
      if (peek().kind == Lex::TagBegin && peek(1).kind == Lex::Name &&
          std::find(stop.begin(), stop.end(), peek(1).text) != stop.end())
        break;
      if (peek().kind == Lex::TagBegin &&
          (peek(1).text.starts_with("end") || peek(1).text.starts_with("el"))) {
        fail(fmt::format("the tag \"{}\" has nothing to close here", peek(1).text));
        break;
      }
      parse_statement(body);
    }
    --tag_depth_;
    return body;
  }

  // The body of a block that `end` closes, and that tag.
  Body parse_block(std::string_view end) {
    Body body = parse_body({end});
    close(end);
    return body;
  }
  void close(std::string_view end) {
    if (failed()) return;
    if (peek().kind != Lex::TagBegin || peek(1).text != end)
      return fail(fmt::format("the template ends without {{% {} %}}", end));
    next();
    next();
    end_tag();
  }
  void end_tag() {
    if (peek().kind != Lex::TagEnd)
      fail(fmt::format("\"{}\" stands where the tag should end", peek().text));
    next();
  }

  std::unique_ptr<Stmt> make(StmtKind kind) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = peek().line;
    return stmt;
  }

  void parse_statement(Body& body) {
    if (peek().kind == Lex::Data) {
      auto stmt = make(StmtKind::Data);
      stmt->text = Text(next().text);
      body.push_back(std::move(stmt));
    } else if (peek().kind == Lex::OutBegin) {
      auto stmt = make(StmtKind::Output);
      next();
      stmt->expr = parse_tuple();
      if (peek().kind != Lex::OutEnd)
        fail(fmt::format("\"{}\" stands where the output should end", peek().text));
      next();
      body.push_back(std::move(stmt));
    } else {
      next();
      parse_tag(body);
    }
  }

  void parse_tag(Body& body) {
    if (peek().kind != Lex::Name) return fail("a tag begins without a name");
    const std::string tag = peek().text;
    if (tag == "if") return body.push_back(parse_if());
    if (tag == "for") return body.push_back(parse_for());
    if (tag == "set") return body.push_back(parse_set());
    if (tag == "macro") return body.push_back(parse_macro());
    if (tag == "generation") {  // marks the assistant's part for training; renders as its body
      next();
      end_tag();
      Body inner = parse_block("endgeneration");
      std::move(inner.begin(), inner.end(), std::back_inserter(body));
      return;
    }
    if (tag == "break" || tag == "continue") {
      if (loop_depth_ == 0) return fail(fmt::format("{} stands outside a loop", tag));
      body.push_back(make(tag == "break" ? StmtKind::Break : StmtKind::Continue));
      next();
      return end_tag();
    }
    fail(ErrorCode::Unsupported,
         fmt::format("the tag \"{}\" is not known; known are if, for, set, macro, raw, generation, "
                     "break and continue",
                     tag));
  }

  std::unique_ptr<Stmt> parse_if() {
    auto stmt = make(StmtKind::If);
    do {
      next();  // if, elif
      stmt->conditions.push_back(parse_tuple(/*with_if=*/true));
      end_tag();
      stmt->bodies.push_back(parse_body({"elif", "else", "endif"}));
      if (failed()) return stmt;
      if (peek().kind == Lex::End) {
        fail("the template ends without {% endif %}");
        return stmt;
      }
      if (peek(1).text == "elif") next();
    } while (!failed() && peek().text == "elif");
    if (!failed() && peek(1).text == "else") {
      next();
      next();
      end_tag();
      stmt->bodies.push_back(parse_body({"endif"}));
    }
    close("endif");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_for() {
    auto stmt = make(StmtKind::For);
    next();
    stmt->names = parse_names();
    if (!skip_name("in")) fail("for is followed by names and \"in\"");
    stmt->expr = parse_tuple(/*with_if=*/false);
    if (skip_name("if")) stmt->filter = parse_expression();
    if (peek().text == "recursive")
      fail(ErrorCode::Unsupported, "recursive loops are not known here");
    end_tag();
    ++loop_depth_;
    stmt->bodies.push_back(parse_body({"else", "endfor"}));
    --loop_depth_;
    if (!failed() && peek(1).text == "else") {
      next();
      next();
      end_tag();
      stmt->bodies.push_back(parse_body({"endfor"}));
    }
    close("endfor");
    return stmt;
  }

  std::vector<std::string> parse_names() {
    std::vector<std::string> names;
    const bool in_brackets = skip_op("(");
    do {
      if (peek().kind != Lex::Name) {
        fail("a variable's name is missing");
        break;
      }
      assigned(peek().text);
      names.push_back(next().text);
    } while (skip_op(","));
    if (in_brackets && !skip_op(")")) fail("the names miss their closing bracket");
    return names;
  }

  std::unique_ptr<Stmt> parse_set() {
    auto stmt = make(StmtKind::Set);
    next();
    if (peek(1).kind == Lex::Op && peek(1).text == ".") {
      stmt->kind = StmtKind::SetMember;
      stmt->names.push_back(next().text);
      next();
      if (peek().kind != Lex::Name) fail("the name of a namespace's member is missing");
      stmt->names.push_back(next().text);
    } else {
      stmt->names = parse_names();
    }
    if (skip_op("=")) {
      stmt->expr = parse_tuple();
      end_tag();
    } else if (stmt->kind == StmtKind::Set && stmt->names.size() == 1 &&
               peek().kind == Lex::TagEnd) {
      stmt->kind = StmtKind::SetBlock;
      end_tag();
      stmt->bodies.push_back(parse_block("endset"));
    } else {
      fail(fmt::format("\"{}\" stands where \"=\" should", peek().text));
    }
    return stmt;
  }

  std::unique_ptr<Stmt> parse_macro() {
    auto stmt = make(StmtKind::Macro);
    if (tag_depth_ > 1 && loop_depth_ + in_macro_ > 0)
      fail(ErrorCode::Unsupported, "macros inside loops or other macros are not known here");
    next();
    stmt->macro = std::make_unique<MacroDef>();
    MacroDef& macro = *stmt->macro;
    assigned(peek().text);
    if (peek().kind != Lex::Name) fail("a macro has no name");
    macro.name = next().text;
    if (!skip_op("(")) fail("a macro's name is followed by its parameters in brackets");
    while (!failed() && !skip_op(")")) {
      if (!macro.params.empty() && !skip_op(",")) fail("a macro's parameters are cut by commas");
      if (peek().kind != Lex::Name) fail("a macro's parameter has no name");
      assigned(peek().text);
      macro.params.push_back(next().text);
      macro.defaults.push_back(skip_op("=") ? parse_expression() : nullptr);
    }
    end_tag();
    ++in_macro_;
    const int loops = std::exchange(loop_depth_, 0);
    macro.body = parse_block("endmacro");
    loop_depth_ = loops;
    --in_macro_;
    return stmt;
  }

  int tag_depth_ = 0;
  int loop_depth_ = 0;
  int in_macro_ = 0;
};

}  // namespace

Result<Body> parse(std::string_view source) {
  auto tokens = lex(source);
  if (!tokens) return tokens.error();
  return Parser(std::move(*tokens)).run();
}

}  // namespace paceline::jinja

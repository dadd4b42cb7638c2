// The rules of Python for operators, comparison, indexing and iteration.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja_builtins.h"
#include "text/jinja_lexer.h"
#include "text/utf8.h"

namespace paceline::jinja {

bool Context::spend(size_t bytes) {
  if (failed()) return false;
  work_ += bytes + 1;
  if (work_ <= kMaxWork) return true;
  fail(ErrorCode::TooLarge, "rendering takes more work than a chat template may");
  return false;
}

Value Context::fail(ErrorCode code, std::string_view message) {
  if (!error_) error_ = at_line(code, line, message);
  return {};
}

void Context::fail_with(Error error) {
  if (!error_) error_ = std::move(error);
}

namespace {

Value not_defined(Context& c, const Undefined& what) {
  return c.fail(ErrorCode::BadFormat, fmt::format("\"{}\" is undefined", what.name));
}

Value misused(Context& c, std::string_view verb, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (const auto* u = std::get_if<Undefined>(&v->data)) return not_defined(c, *u);
  return c.fail(ErrorCode::BadFormat,
                fmt::format("cannot {} {} and {}", verb, type_name(a), type_name(b)));
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0))); }

Value integer_op(Context& c, Op op, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflow = false;
  switch (op) {
    case Op::Add:
      overflow = __builtin_add_overflow(a, b, &out);
      break;
    case Op::Sub:
      overflow = __builtin_sub_overflow(a, b, &out);
      break;
    case Op::Mul:
      overflow = __builtin_mul_overflow(a, b, &out);
      break;
    case Op::FloorDiv:
    case Op::Mod:
      if (b == 0) return c.fail(ErrorCode::BadFormat, "division by zero");
      if (b == -1) {  // the one quotient that may not fit
        overflow = __builtin_sub_overflow(int64_t{0}, a, &out);
        if (op == Op::Mod) return int64_t{0};
        break;
      }
      out = floor_div(a, b);
      if (op == Op::Mod) out = a - out * b;
      break;
    default: {  // a power with b >= 0
      out = 1;
      if (a == 0 || a == 1 || a == -1) return b == 0 ? 1 : (a == -1 && b % 2 == 0) ? 1 : a;
      for (int64_t i = 0; i < b && !overflow; ++i) overflow = __builtin_mul_overflow(out, a, &out);
      break;
    }
  }
  if (overflow) return c.fail(ErrorCode::TooLarge, "an integer does not fit into 64 bits");
  return out;
}

Value float_op(Context& c, Op op, double a, double b) {
  if (b == 0 && (op == Op::Div || op == Op::FloorDiv || op == Op::Mod))
    return c.fail(ErrorCode::BadFormat, "division by zero");
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::FloorDiv:
      return std::floor(a / b);
    case Op::Mod: {
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    default:
      return std::pow(a, b);
  }
}

Value repeat(Context& c, const Value& what, int64_t n) {
  n = std::max<int64_t>(n, 0);
  const Text* text = what.text();
  const size_t size = text ? text->size() : what.list()->items.size() * sizeof(Value);
  constexpr uint64_t kFar = uint64_t{1} << 40;  // past any limit, and no overflow
  if (size == 0) return what;
  if (!c.spend(static_cast<uint64_t>(n) > kFar / size ? kFar : size * static_cast<size_t>(n)))
    return {};
  if (text) {
    Text out;
    for (int64_t i = 0; i < n; ++i) out.append(*text);
    return out;
  }
  std::vector<Value> items;
  for (int64_t i = 0; i < n; ++i)
    items.insert(items.end(), what.list()->items.begin(), what.list()->items.end());
  return make_list(c, std::move(items), what.list()->is_tuple);
}

Value add(Context& c, const Value& a, const Value& b) {
  if (a.text() && b.text()) {
    if (!c.spend(a.text()->size() + b.text()->size())) return {};
    Text out = *a.text();
    out.append(*b.text());
    return out;
  }
  if (a.list() && b.list() && a.list()->is_tuple == b.list()->is_tuple) {
    std::vector<Value> items = a.list()->items;
    items.insert(items.end(), b.list()->items.begin(), b.list()->items.end());
    return make_list(c, std::move(items), a.list()->is_tuple);
  }
  return misused(c, "add", a, b);
}

bool contains(Context& c, const Value& item, const Value& container) {
  if (const Text* text = container.text()) {
    if (!item.text()) {
      misused(c, "look for one in the other:", item, container);
      return false;
    }
    c.spend(text->size());
    return text->bytes.find(item.text()->bytes) != std::string::npos;
  }
  if (const List* list = container.list()) {
    return std::any_of(list->items.begin(), list->items.end(),
                       [&](const Value& v) { return equal(c, v, item); });
  }
  if (const Dict* dict = container.dict())
    return item.text() && dict->find(item.text()->bytes) != nullptr;
  if (!container.is_undefined()) misused(c, "look for one in the other:", item, container);
  return false;
}

// Less than 0, 0, or more than 0; fails where Python knows no order.
int order(Context& c, const Value& a, const Value& b) {
  if (!c.spend(kWorkPerNode)) return 0;
  if (a.is_number() && b.is_number()) {
    int64_t i = 0;
    int64_t j = 0;
    if (a.integer(i) && b.integer(j)) return i < j ? -1 : i > j;
    return a.number() < b.number() ? -1 : a.number() > b.number();
  }
  if (a.text() && b.text()) return a.text()->bytes.compare(b.text()->bytes);
  if (a.list() && b.list()) {
    const auto& x = a.list()->items;
    const auto& y = b.list()->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()) && !c.failed(); ++i)
      if (!equal(c, x[i], y[i])) return order(c, x[i], y[i]);
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  misused(c, "order", a, b);
  return 0;
}

}  // namespace

bool equal(Context& c, const Value& a, const Value& b) {
  if (!c.spend(kWorkPerNode)) return false;
  if (a.is_number() && b.is_number()) {
    int64_t i = 0;
    int64_t j = 0;
    return a.integer(i) && b.integer(j) ? i == j : a.number() == b.number();
  }
  if (a.data.index() != b.data.index()) return false;
  if (a.text()) return a.text()->bytes == b.text()->bytes;
  if (const List* list = a.list()) {
    const List* other = b.list();
    return list->is_tuple == other->is_tuple &&
           std::equal(list->items.begin(), list->items.end(), other->items.begin(),
                      other->items.end(),
                      [&](const Value& x, const Value& y) { return equal(c, x, y); });
  }
  if (const Dict* dict = a.dict()) {
    return dict->entries.size() == b.dict()->entries.size() &&
           std::all_of(dict->entries.begin(), dict->entries.end(), [&](const auto& entry) {
             const Value* other = b.dict()->find(entry.first);
             return other && equal(c, entry.second, *other);
           });
  }
  if (a.is_namespace()) return a.name_space() == b.name_space();
  if (a.loop()) return a.loop() == b.loop();
  if (const auto* macro = std::get_if<const MacroDef*>(&a.data))
    return *macro == std::get<const MacroDef*>(b.data);
  return true;  // none and undefined each equal themselves
}

bool compare(Context& c, Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::Eq:
      return equal(c, a, b);
    case Op::Ne:
      return !equal(c, a, b);
    case Op::In:
      return contains(c, a, b);
    case Op::NotIn:
      return !contains(c, a, b);
    case Op::Lt:
      return order(c, a, b) < 0;
    case Op::Le:
      return order(c, a, b) <= 0;
    case Op::Gt:
      return order(c, a, b) > 0;
    default:
      return order(c, a, b) >= 0;
  }
}

Value binary(Context& c, Op op, const Value& a, const Value& b) {
  if (op == Op::Concat) {
    Text out = to_text(c, a);
    out.append(to_text(c, b));
    if (!c.spend(out.size())) return {};
    return out;
  }
  int64_t i = 0;
  int64_t j = 0;
  if (a.is_number() && b.is_number()) {
    const bool stays_whole = op != Op::Div && a.integer(i) && b.integer(j);
    if (stays_whole && !(op == Op::Pow && j < 0)) return integer_op(c, op, i, j);
    return float_op(c, op, a.number(), b.number());
  }
  if (op == Op::Mul && b.integer(j) && (a.text() || a.list())) return repeat(c, a, j);
  if (op == Op::Mul && a.integer(i) && (b.text() || b.list())) return repeat(c, b, i);
  if (op == Op::Add) return add(c, a, b);
  return misused(c, "calculate with", a, b);
}

Value make_list(Context& c, std::vector<Value> items, bool is_tuple) {
  auto list = std::make_shared<List>();
  if (!c.spend(items.size() * sizeof(Value))) return {};
  for (const Value& item : items) {
    if (item.is_namespace())
      return c.fail(ErrorCode::Unsupported, "a namespace cannot be kept inside another value");
    list->depth = std::max(list->depth, depth_of(item) + 1);
  }
  if (list->depth > kMaxValueDepth) return c.fail(ErrorCode::TooLarge, "lists are nested too deep");
  list->items = std::move(items);
  list->is_tuple = is_tuple;
  return std::shared_ptr<const List>(std::move(list));
}

Value make_dict(Context& c, Dict entries) {
  if (!c.spend(entries.entries.size() * sizeof(Value))) return {};
  entries.depth = 1;
  for (const auto& [name, value] : entries.entries) {
    if (value.is_namespace())
      return c.fail(ErrorCode::Unsupported, "a namespace cannot be kept inside another value");
    entries.depth = std::max(entries.depth, depth_of(value) + 1);
  }
  if (entries.depth > kMaxValueDepth)
    return c.fail(ErrorCode::TooLarge, "mappings are nested too deep");
  return std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(entries)));
}

namespace {

Value loop_member(const Loop& loop, std::string_view key) {
  const auto n = static_cast<int64_t>(loop.items->items.size());
  const int64_t i = loop.index0;
  if (key == "index") return i + 1;
  if (key == "index0") return i;
  if (key == "revindex") return n - i;
  if (key == "revindex0") return n - i - 1;
  if (key == "first") return i == 0;
  if (key == "last") return i == n - 1;
  if (key == "length") return n;
  if (key == "depth") return int64_t{1};  // counts recursive loops, which are not known here
  if (key == "depth0") return int64_t{0};
  if (key == "previtem" && i > 0) return loop.items->items[static_cast<size_t>(i - 1)];
  if (key == "nextitem" && i + 1 < n) return loop.items->items[static_cast<size_t>(i + 1)];
  return Undefined{"loop." + std::string(key)};
}

}  // namespace

Value subscript(Context& c, const Value& object, const Value& key) {
  if (const auto* u = std::get_if<Undefined>(&object.data)) return not_defined(c, *u);
  int64_t index = 0;
  if (const Text* name = key.text()) {
    const Dict* dict = object.is_namespace() ? object.name_space() : object.dict();
    if (dict) {
      c.spend(dict->entries.size());
      if (const Value* found = dict->find(name->bytes)) return *found;
    }
    if (const Loop* loop = object.loop()) return loop_member(*loop, name->bytes);
    return Undefined{name->bytes.substr(0, 60)};
  }
  if (key.integer(index)) {
    if (const List* list = object.list()) {
      const auto n = static_cast<int64_t>(list->items.size());
      if (index < 0) index += n;
      if (index >= 0 && index < n) return list->items[static_cast<size_t>(index)];
    } else if (const Text* text = object.text()) {
      c.spend(text->size());
      const int64_t n = n_chars(text->bytes);
      if (index < 0) index += n;
      if (index >= 0 && index < n) {
        const size_t begin = char_offset(text->bytes, index);
        return text->part(begin, static_cast<size_t>(read_utf8(text->bytes, begin).length));
      }
    }
    return Undefined{fmt::format("item {}", index)};
  }
  return Undefined{std::string("item by ") + type_name(key)};
}

Value slice(Context& c, const Value& object, const std::optional<int64_t> (&bounds)[3]) {
  if (const auto* u = std::get_if<Undefined>(&object.data)) return not_defined(c, *u);
  const Text* text = object.text();
  const List* list = object.list();
  if (!text && !list)
    return c.fail(ErrorCode::BadFormat, fmt::format("cannot slice {}", type_name(object)));
  if (bounds[2] == 0) return c.fail(ErrorCode::BadFormat, "a slice has the step 0");
  std::vector<size_t> chars;  // where each character starts
  for (size_t pos = 0; text && pos < text->size();) {
    chars.push_back(pos);
    pos += static_cast<size_t>(read_utf8(text->bytes, pos).length);
  }
  if (!c.spend(chars.size() * sizeof(size_t))) return {};

  const auto n = static_cast<int64_t>(text ? chars.size() : list->items.size());
  const int64_t step = std::clamp<int64_t>(bounds[2].value_or(1), -n - 1, n + 1);
  // Python's rule: negative bounds count from the end, and all are clipped to what there is.
  const int64_t low = step < 0 ? -1 : 0;
  const int64_t high = step < 0 ? n - 1 : n;
  const auto clipped = [&](std::optional<int64_t> bound, int64_t otherwise) {
    if (!bound) return otherwise;
    return std::clamp(*bound < 0 ? std::max(*bound, -n - 1) + n : *bound, low, high);
  };
  const int64_t begin = clipped(bounds[0], step < 0 ? high : low);
  const int64_t end = clipped(bounds[1], step < 0 ? low : high);

  Text out;
  std::vector<Value> items;
  for (int64_t i = begin; step < 0 ? i > end : i < end; i += step) {
    const auto at = static_cast<size_t>(i);
    if (list)
      items.push_back(list->items[at]);
    else
      out.append(
          text->part(chars[at], static_cast<size_t>(read_utf8(text->bytes, chars[at]).length)));
  }
  return list ? make_list(c, std::move(items), list->is_tuple) : Value(std::move(out));
}

std::shared_ptr<const List> iterate(Context& c, const Value& value) {
  if (const auto* list = std::get_if<std::shared_ptr<const List>>(&value.data)) return *list;
  auto items = std::make_shared<List>();
  if (const Dict* dict = value.dict()) {
    c.spend(dict->entries.size() * kWorkPerItem);
    for (const auto& entry : dict->entries) items->items.emplace_back(Text(entry.first));
  } else if (const Text* text = value.text()) {
    if (!c.spend(text->size() * kWorkPerItem)) return items;
    for (size_t pos = 0; pos < text->size();) {
      const auto n = static_cast<size_t>(read_utf8(text->bytes, pos).length);
      items->items.emplace_back(text->part(pos, n));
      pos += n;
    }
  } else if (!value.is_undefined()) {
    c.fail(ErrorCode::BadFormat, fmt::format("cannot go through {}", type_name(value)));
  }
  return items;
}

}  // namespace paceline::jinja

// Filters and tests.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_builtins.h"
#include "text/jinja_strings.h"

namespace paceline::jinja {

namespace {

Value trim(Context& c, const Value& v, const Args& args) {
  const Text* chars = args[0] ? args[0]->text() : nullptr;
  const Text text = to_text(c, v);
  if (!c.spend(text.size() * (chars ? chars->size() : 1))) return {};
  return stripped(text, chars ? std::optional<std::string_view>(chars->bytes) : std::nullopt,
                  Side::Both);
}

Value length(Context& c, const Value& v, const Args&) {
  if (v.is_undefined()) return int64_t{0};
  if (const Text* text = v.text()) return c.spend(text->size()), n_chars(text->bytes);
  if (v.list() || v.dict()) return static_cast<int64_t>(iterate(c, v)->items.size());
  return c.fail(ErrorCode::BadFormat, fmt::format("{} has no length", type_name(v)));
}

template <Case which>
Value recase(Context& c, const Value& v, const Args&) {
  return with_case(to_text(c, v), which);
}

template <bool is_first>
Value end_item(Context& c, const Value& v, const Args&) {
  if (const Text* text = v.text()) {  // one character, without a list of all
    const Value at = int64_t{is_first ? 0 : -1};
    return text->size() == 0 ? Value(Undefined{"item of an empty string"}) : subscript(c, v, at);
  }
  const auto items = iterate(c, v);
  if (items->items.empty()) return Undefined{"item of an empty list"};
  return is_first ? items->items.front() : items->items.back();
}

Value join(Context& c, const Value& v, const Args& args) {
  const Text between = args[0] ? to_text(c, *args[0]) : Text();
  const auto items = iterate(c, v);
  Text out;
  for (size_t i = 0; i < items->items.size() && !c.failed(); ++i) {
    Value item = items->items[i];
    if (args[1]) item = subscript(c, item, *args[1]);
    if (i > 0) out.append(between);
    out.append(to_text(c, item));
    c.spend(between.size());
  }
  return out;
}

Value fallback(Context&, const Value& v, const Args& args) {
  const bool if_false = args[1] && is_true(*args[1]);
  const bool takes = v.is_undefined() || (if_false && !is_true(v));
  return takes ? args[0].value_or(Text()) : v;
}

Value replace(Context& c, const Value& v, const Args& args) {
  int64_t count = -1;
  if (args[2] && !args[2]->is_none() && !args[2]->integer(count))
    return c.fail(ErrorCode::BadFormat, "replace wants a count");
  return replaced(c, to_text(c, v), to_text(c, *args[0]), to_text(c, *args[1]),
                  count < 0 ? std::nullopt : std::optional<int64_t>(count));
}

Value string(Context& c, const Value& v, const Args&) { return to_text(c, v); }
Value unchanged(Context&, const Value& v, const Args&) { return v; }

Value tojson(Context& c, const Value& v, const Args& args) {
  int64_t indent = -1;
  if (args[0] && is_true(*args[0]))
    return c.fail(ErrorCode::Unsupported, "tojson with ensure_ascii is not known here");
  if (args[1] && !args[1]->is_none() && (!args[1]->integer(indent) || indent < 0 || indent > 16))
    return c.fail(ErrorCode::Unsupported, "tojson wants an indent of 0 to 16");
  return to_json(c, v, static_cast<int>(indent));
}

Value list(Context& c, const Value& v, const Args&) { return make_list(c, iterate(c, v)->items); }

Value items(Context& c, const Value& v, const Args& args) {
  if (v.is_undefined()) return make_list(c, {});
  if (!v.dict()) return c.fail(ErrorCode::BadFormat, "items wants a mapping");
  return find_dict_method("items")->call(c, v, args);
}

Value to_int(Context&, const Value& v, const Args& args) {
  Value otherwise = args[0].value_or(int64_t{0});
  int64_t value = 0;
  if (v.integer(value)) return value;
  if (v.is_number()) {
    const double x = std::trunc(v.number());
    return x >= -9e18 && x <= 9e18 ? Value(static_cast<int64_t>(x)) : otherwise;
  }
  if (!v.text()) return otherwise;
  const Text text = stripped(*v.text(), std::nullopt, Side::Both);
  const char* begin = text.bytes.data();
  const char* const end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  if (const auto read = std::from_chars(begin, end, value);
      read.ec == std::errc() && read.ptr == end)
    return value;
  double x = 0;  // "3.7" is 3
  if (const auto read = std::from_chars(begin, end, x);
      read.ec == std::errc() && read.ptr == end && std::fabs(x) < 9e18)
    return static_cast<int64_t>(x);
  return otherwise;
}

Value to_float(Context&, const Value& v, const Args& args) {
  if (v.is_number()) return v.number();
  double x = 0;
  if (v.text()) {
    const Text text = stripped(*v.text(), std::nullopt, Side::Both);
    const char* const end = text.bytes.data() + text.size();
    const auto read = std::from_chars(text.bytes.data(), end, x);
    if (read.ec == std::errc() && read.ptr == end) return x;
  }
  return args[0].value_or(0.0);
}

Value absolute(Context& c, const Value& v, const Args&) {
  int64_t i = 0;
  if (v.integer(i)) return i < 0 ? binary(c, Op::Sub, int64_t{0}, i) : Value(i);
  if (v.is_number()) return std::fabs(v.number());
  return c.fail(ErrorCode::BadFormat, fmt::format("abs of {}", type_name(v)));
}

Value reverse(Context& c, const Value& v, const Args&) {
  if (v.text() || v.list()) {
    const std::optional<int64_t> bounds[3] = {std::nullopt, std::nullopt, -1};
    return slice(c, v, bounds);
  }
  auto reversed = iterate(c, v)->items;
  std::reverse(reversed.begin(), reversed.end());
  return make_list(c, std::move(reversed));
}

Value indent(Context& c, const Value& v, const Args& args) {
  int64_t width = 4;
  if (args[0] && (!args[0]->integer(width) || width < 0 || width > 1000))
    return c.fail(ErrorCode::Unsupported, "indent wants a width of 0 to 1000");
  const bool first = args[1] && is_true(*args[1]);
  const bool blank = args[2] && is_true(*args[2]);
  const Text text = to_text(c, v);
  const std::string margin(static_cast<size_t>(width), ' ');
  Text out;
  for (size_t pos = 0; pos <= text.size();) {
    const size_t end = std::min(text.bytes.find('\n', pos), text.size());
    const bool wants = pos == 0 ? first : (blank || end > pos);
    if (wants) out.append(margin);
    out.append(text.part(pos, end - pos + 1));  // with its line end, where it has one
    if (!c.spend(margin.size() + end - pos)) return {};
    pos = end + 1;
  }
  return out;
}

// The items for which a test holds, or does not; `item` picks what is tested.
template <class Item>
Value pick(Context& c, const Value& v, bool wanted, const std::optional<Value>& name,
           const std::optional<Value>& arg, const Item& item) {
  const Builtin* test = nullptr;
  if (name) {
    test = name->text() ? find_test(name->text()->bytes) : nullptr;
    if (!test)
      return c.fail(ErrorCode::Unsupported,
                    fmt::format("no test is named \"{}\"", to_text(c, *name).bytes.substr(0, 60)));
    if ((test->n_required > 0) != arg.has_value())
      return c.fail(ErrorCode::BadFormat, fmt::format("the test {} takes {} argument", test->name,
                                                      test->n_required > 0 ? "an" : "no"));
  }
  std::vector<Value> picked;
  const auto all = iterate(c, v);  // may be the list's only owner
  for (const Value& candidate : all->items) {
    const Value tested = item(candidate);
    if (c.failed()) return {};
    const bool holds = test ? is_true(test->call(c, tested, {arg})) : is_true(tested);
    if (holds == wanted) picked.push_back(candidate);
  }
  return make_list(c, std::move(picked));
}
template <bool wanted>
Value select(Context& c, const Value& v, const Args& args) {
  return pick(c, v, wanted, args[0], args[1], [](const Value& item) { return item; });
}
template <bool wanted>
Value select_attr(Context& c, const Value& v, const Args& args) {
  return pick(c, v, wanted, args[1], args[2],
              [&](const Value& item) { return subscript(c, item, *args[0]); });
}

Value map(Context& c, const Value& v, const Args& args) {
  if (args[0].has_value() == args[1].has_value())
    return c.fail(ErrorCode::BadFormat, "map wants a filter's name or attribute=");
  const Builtin* filter = nullptr;
  if (args[0]) {
    filter = args[0]->text() ? find_filter(args[0]->text()->bytes) : nullptr;
    if (!filter || filter->n_required > 0)
      return c.fail(ErrorCode::Unsupported, "map knows only filters that need no argument");
  }
  std::vector<Value> mapped;
  const auto all = iterate(c, v);  // may be the list's only owner
  for (const Value& item : all->items) {
    mapped.push_back(filter ? filter->call(c, item, {}) : subscript(c, item, *args[1]));
    if (!c.spend(kWorkPerItem)) return {};
  }
  return make_list(c, std::move(mapped));
}

template <class T>
Value has_type(Context&, const Value& v, const Args&) {
  return v.is<T>();
}
template <bool wanted>
Value is_bool(Context&, const Value& v, const Args&) {
  const bool* b = std::get_if<bool>(&v.data);
  return b && *b == wanted;
}
Value is_defined(Context&, const Value& v, const Args&) { return !v.is_undefined(); }
Value is_string(Context&, const Value& v, const Args&) { return v.text() != nullptr; }
Value is_number(Context&, const Value& v, const Args&) { return v.is_number(); }
Value is_mapping(Context&, const Value& v, const Args&) { return v.dict() != nullptr; }
Value is_sequence(Context&, const Value& v, const Args&) {
  return v.text() || v.list() || v.dict() || v.is_undefined();
}
template <int64_t rest>
Value is_parity(Context& c, const Value& v, const Args&) {
  return equal(c, binary(c, Op::Mod, v, int64_t{2}), rest);
}
Value is_divisible(Context& c, const Value& v, const Args& args) {
  return equal(c, binary(c, Op::Mod, v, *args[0]), int64_t{0});
}
template <Op op>
Value compares(Context& c, const Value& v, const Args& args) {
  return compare(c, op, v, *args[0]);
}
template <Case which>
Value has_case(Context& c, const Value& v, const Args&) {
  const Text text = to_text(c, v);
  return with_case(text, which).bytes == text.bytes &&
         with_case(text, which == Case::Upper ? Case::Lower : Case::Upper).bytes != text.bytes;
}

constexpr Builtin kFilters[] = {
    {"abs", {}, 0, absolute},
    {"capitalize", {}, 0, recase<Case::Capitalize>},
    {"count", {}, 0, length},
    {"d", {"default_value", "boolean"}, 0, fallback},
    {"default", {"default_value", "boolean"}, 0, fallback},
    {"first", {}, 0, end_item<true>},
    {"float", {"default"}, 0, to_float},
    {"indent", {"width", "first", "blank"}, 0, indent},
    {"int", {"default"}, 0, to_int},
    {"items", {}, 0, items},
    {"join", {"d", "attribute"}, 0, join},
    {"last", {}, 0, end_item<false>},
    {"length", {}, 0, length},
    {"list", {}, 0, list},
    {"lower", {}, 0, recase<Case::Lower>},
    {"map", {"filter", "attribute"}, 0, map},
    {"reject", {"test", "argument"}, 0, select<false>},
    {"rejectattr", {"attribute", "test", "argument"}, 1, select_attr<false>},
    {"replace", {"old", "new", "count"}, 2, replace},
    {"reverse", {}, 0, reverse},
    {"safe", {}, 0, unchanged},  // nothing is escaped for HTML here
    {"select", {"test", "argument"}, 0, select<true>},
    {"selectattr", {"attribute", "test", "argument"}, 1, select_attr<true>},
    {"string", {}, 0, string},
    {"title", {}, 0, recase<Case::Words>},
    {"tojson", {"ensure_ascii", "indent"}, 0, tojson},
    {"trim", {"chars"}, 0, trim},
    {"upper", {}, 0, recase<Case::Upper>},
};

constexpr Builtin kTests[] = {
    {"boolean", {}, 0, has_type<bool>},
    {"defined", {}, 0, is_defined},
    {"divisibleby", {"num"}, 1, is_divisible},
    {"eq", {"other"}, 1, compares<Op::Eq>},
    {"equalto", {"other"}, 1, compares<Op::Eq>},
    {"even", {}, 0, is_parity<0>},
    {"false", {}, 0, is_bool<false>},
    {"float", {}, 0, has_type<double>},
    {"ge", {"other"}, 1, compares<Op::Ge>},
    {"greaterthan", {"other"}, 1, compares<Op::Gt>},
    {"gt", {"other"}, 1, compares<Op::Gt>},
    {"in", {"seq"}, 1, compares<Op::In>},
    {"integer", {}, 0, has_type<int64_t>},
    {"iterable", {}, 0, is_sequence},
    {"le", {"other"}, 1, compares<Op::Le>},
    {"lessthan", {"other"}, 1, compares<Op::Lt>},
    {"lower", {}, 0, has_case<Case::Lower>},
    {"lt", {"other"}, 1, compares<Op::Lt>},
    {"mapping", {}, 0, is_mapping},
    {"ne", {"other"}, 1, compares<Op::Ne>},
    {"none", {}, 0, has_type<None>},
    {"number", {}, 0, is_number},
    {"odd", {}, 0, is_parity<1>},
    {"sequence", {}, 0, is_sequence},
    {"string", {}, 0, is_string},
    {"true", {}, 0, is_bool<true>},
    {"undefined", {}, 0, has_type<Undefined>},
    {"upper", {}, 0, has_case<Case::Upper>},
};

template <size_t n>
const Builtin* find_in(const Builtin (&table)[n], std::string_view name) {
  const auto* const found = std::find_if(std::begin(table), std::end(table),
                                         [&](const Builtin& b) { return b.name == name; });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace

const Builtin* find_filter(std::string_view name) { return find_in(kFilters, name); }
const Builtin* find_test(std::string_view name) { return find_in(kTests, name); }

}  // namespace paceline::jinja

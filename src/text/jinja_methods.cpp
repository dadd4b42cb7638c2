// Methods of strings and mappings, and the global functions.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "text/jinja_builtins.h"
#include "text/jinja_strings.h"

namespace paceline::jinja {

namespace {

// The argument as a string, or nothing; fails when it is given and is none.
std::optional<std::string_view> text_arg(Context& c, const std::optional<Value>& arg) {
  if (!arg || arg->is_none()) return std::nullopt;
  if (const Text* text = arg->text()) return text->bytes;
  c.fail(ErrorCode::BadFormat, fmt::format("a string is wanted, not {}", type_name(*arg)));
  return std::nullopt;
}
std::optional<int64_t> int_arg(Context& c, const std::optional<Value>& arg) {
  int64_t value = 0;
  if (!arg || arg->is_none()) return std::nullopt;
  if (arg->integer(value)) return value;
  c.fail(ErrorCode::BadFormat, fmt::format("an integer is wanted, not {}", type_name(*arg)));
  return std::nullopt;
}

template <Side side>
Value strip(Context& c, const Value& self, const Args& args) {
  const auto chars = text_arg(c, args[0]);
  if (!c.spend(self.text()->size() * (chars ? chars->size() : 1))) return {};
  return stripped(*self.text(), chars, side);
}
template <Case which>
Value recase(Context& c, const Value& self, const Args&) {
  if (!c.spend(self.text()->size())) return {};
  return with_case(*self.text(), which);
}

Value split_method(Context& c, const Value& self, const Args& args) {
  if (!c.spend(self.text()->size())) return {};
  return split(c, *self.text(), text_arg(c, args[0]), int_arg(c, args[1]));
}
Value splitlines(Context& c, const Value& self, const Args&) {
  if (!c.spend(self.text()->size())) return {};
  return split_lines(c, *self.text());
}

bool has_affix(std::string_view text, std::string_view affix, bool at_start) {
  return at_start ? text.starts_with(affix) : text.ends_with(affix);
}
template <bool at_start>
Value affix_test(Context& c, const Value& self, const Args& args) {
  const std::string_view text = self.text()->bytes;
  const List* choices = args[0]->list();  // a tuple: any of them
  if (!choices) {
    const auto affix = text_arg(c, args[0]);
    return affix && has_affix(text, *affix, at_start);
  }
  return std::any_of(choices->items.begin(), choices->items.end(), [&](const Value& choice) {
    const auto affix = text_arg(c, choice);
    return affix && has_affix(text, *affix, at_start);
  });
}
template <bool at_start>
Value remove_affix(Context& c, const Value& self, const Args& args) {
  const Text& text = *self.text();
  const auto affix = text_arg(c, args[0]);
  if (!affix || !c.spend(text.size()) || !has_affix(text.bytes, *affix, at_start)) return self;
  return at_start ? text.part(affix->size()) : text.part(0, text.size() - affix->size());
}

Value replace(Context& c, const Value& self, const Args& args) {
  if (!args[0]->text() || !args[1]->text())
    return c.fail(ErrorCode::BadFormat, "replace wants two strings");
  if (!c.spend(self.text()->size())) return {};
  return replaced(c, *self.text(), *args[0]->text(), *args[1]->text(), int_arg(c, args[2]));
}

Value find(Context& c, const Value& self, const Args& args) {
  const auto what = text_arg(c, args[0]);
  const std::string_view text = self.text()->bytes;
  if (!what || !c.spend(text.size())) return {};
  const size_t at = text.find(*what);
  return at == std::string_view::npos ? int64_t{-1} : n_chars(text.substr(0, at));
}

Value count(Context& c, const Value& self, const Args& args) {
  const auto what = text_arg(c, args[0]);
  const std::string_view text = self.text()->bytes;
  if (!what || !c.spend(text.size())) return {};
  if (what->empty()) return n_chars(text) + 1;
  int64_t n = 0;
  for (size_t at = text.find(*what); at != std::string_view::npos;
       at = text.find(*what, at + what->size()))
    ++n;
  return n;
}

Value join(Context& c, const Value& self, const Args& args) {
  const auto items = iterate(c, *args[0]);
  Text out;
  for (size_t i = 0; i < items->items.size() && !c.failed(); ++i) {
    const Text* item = items->items[i].text();
    if (!item) return c.fail(ErrorCode::BadFormat, "join wants strings");
    if (i > 0) out.append(*self.text());
    out.append(*item);
    c.spend(item->size() + self.text()->size());
  }
  return out;
}

Value dict_items(Context& c, const Value& self, const Args&) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.dict()->entries)
    pairs.push_back(make_list(c, {Text(key), value}, true));
  return make_list(c, std::move(pairs));
}
Value dict_keys(Context& c, const Value& self, const Args&) {
  return make_list(c, iterate(c, self)->items);
}
Value dict_values(Context& c, const Value& self, const Args&) {
  std::vector<Value> values;
  for (const auto& entry : self.dict()->entries) values.push_back(entry.second);
  return make_list(c, std::move(values));
}
Value dict_get(Context& c, const Value& self, const Args& args) {
  const auto key = text_arg(c, args[0]);
  const Value* found = key ? self.dict()->find(*key) : nullptr;
  return found ? *found : args[1].value_or(None{});
}

Value range(Context& c, const Value&, const Args& args) {
  constexpr int64_t kMostItems = 100'000;  // as in Jinja's sandbox
  const auto a = int_arg(c, args[0]);
  const auto b = int_arg(c, args[1]);
  const auto step = int_arg(c, args[2]);
  if (c.failed() || !a || step == 0)
    return c.fail(ErrorCode::BadFormat, "range wants integers, and a step other than 0");
  const int64_t begin = b ? *a : 0;
  const int64_t end = b ? *b : *a;
  std::vector<Value> items;
  int64_t at = begin;
  while (step.value_or(1) > 0 ? at < end : at > end) {
    if (static_cast<int64_t>(items.size()) == kMostItems)
      return c.fail(ErrorCode::TooLarge,
                    fmt::format("range gives more than {} numbers", kMostItems));
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step.value_or(1), &at)) break;
  }
  return make_list(c, std::move(items));
}

Value raise_exception(Context& c, const Value&, const Args& args) {
  std::string words = to_text(c, *args[0]).bytes;
  std::replace(words.begin(), words.end(), '\n', ' ');
  return c.fail(ErrorCode::BadUsage, words);
}

Value strftime_now(Context& c, const Value&, const Args& args) {
  const auto format = text_arg(c, args[0]);
  if (!format || format->size() > 1000)
    return c.fail(ErrorCode::BadFormat, "strftime_now wants a short format");
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  // A mark behind the format tells an empty result from one that does not fit.
  const std::string with_mark = std::string(*format) + "|";
  std::string out(16'384, '\0');
  out.resize(std::strftime(out.data(), out.size(), with_mark.c_str(), &local));
  if (out.empty()) return c.fail(ErrorCode::BadFormat, "strftime_now cannot use this format");
  out.pop_back();
  return Text(std::move(out));
}

constexpr Builtin kStringMethods[] = {
    {"capitalize", {}, 0, recase<Case::Capitalize>},
    {"count", {"sub"}, 1, count},
    {"endswith", {"suffix"}, 1, affix_test<false>},
    {"find", {"sub"}, 1, find},
    {"join", {"iterable"}, 1, join},
    {"lower", {}, 0, recase<Case::Lower>},
    {"lstrip", {"chars"}, 0, strip<Side::Left>},
    {"removeprefix", {"prefix"}, 1, remove_affix<true>},
    {"removesuffix", {"suffix"}, 1, remove_affix<false>},
    {"replace", {"old", "new", "count"}, 2, replace},
    {"rstrip", {"chars"}, 0, strip<Side::Right>},
    {"split", {"sep", "maxsplit"}, 0, split_method},
    {"splitlines", {}, 0, splitlines},
    {"startswith", {"prefix"}, 1, affix_test<true>},
    {"strip", {"chars"}, 0, strip<Side::Both>},
    {"title", {}, 0, recase<Case::Title>},
    {"upper", {}, 0, recase<Case::Upper>},
};
constexpr Builtin kDictMethods[] = {
    {"get", {"key", "default"}, 1, dict_get},
    {"items", {}, 0, dict_items},
    {"keys", {}, 0, dict_keys},
    {"values", {}, 0, dict_values},
};
constexpr Builtin kFunctions[] = {
    {"raise_exception", {"message"}, 1, raise_exception},
    {"range", {"start", "stop", "step"}, 1, range},
    {"strftime_now", {"format"}, 1, strftime_now},
};

template <size_t n>
const Builtin* find_in(const Builtin (&table)[n], std::string_view name) {
  const auto* const found = std::find_if(std::begin(table), std::end(table),
                                         [&](const Builtin& b) { return b.name == name; });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace

const Builtin* find_string_method(std::string_view name) { return find_in(kStringMethods, name); }
const Builtin* find_dict_method(std::string_view name) { return find_in(kDictMethods, name); }
const Builtin* find_function(std::string_view name) { return find_in(kFunctions, name); }

int Builtin::n_params() const {
  return static_cast<int>(std::find(params.begin(), params.end(), "") - params.begin());
}

std::string misfit(const Builtin& builtin, const Expr& call) {
  const auto n_params = static_cast<size_t>(builtin.n_params());
  if (call.args.size() + call.named_args.size() > n_params)
    return fmt::format("{} takes at most {} arguments", builtin.name, n_params);
  std::array<bool, kMaxParams> given = {};
  for (size_t i = 0; i < call.args.size(); ++i) given[i] = true;
  for (const auto& named : call.named_args) {
    const auto at =
        static_cast<size_t>(std::find(builtin.params.begin(), builtin.params.end(), named.first) -
                            builtin.params.begin());
    if (at >= n_params || given[at])
      return fmt::format("{} has no argument \"{}\", or has it twice", builtin.name, named.first);
    given[at] = true;
  }
  for (size_t i = 0; i < static_cast<size_t>(builtin.n_required); ++i)
    if (!given[i]) return fmt::format("{} misses its argument {}", builtin.name, builtin.params[i]);
  return "";
}

}  // namespace paceline::jinja

#include "text/jinja_value.h"

#include <algorithm>

namespace paceline::jinja {

bool Value::integer(int64_t& out) const {
  if (const auto* i = std::get_if<int64_t>(&data)) return out = *i, true;
  if (const auto* b = std::get_if<bool>(&data)) return out = *b, true;
  return false;
}

double Value::number() const {
  if (const auto* d = std::get_if<double>(&data)) return *d;
  int64_t i = 0;
  integer(i);
  return static_cast<double>(i);
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

void Dict::set(std::string key, Value value) {
  for (auto& [name, old] : entries)
    if (name == key) {
      old = std::move(value);
      return;
    }
  entries.emplace_back(std::move(key), std::move(value));
}

int depth_of(const Value& value) {
  if (const List* list = value.list()) return list->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  return 0;
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is_number()) return value.number() != 0;
  if (const Text* text = value.text()) return text->size() > 0;
  if (const List* list = value.list()) return !list->items.empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  return true;
}

const char* type_name(const Value& value) {
  static constexpr const char* kNames[] = {"undefined", "none",   "boolean", "integer",
                                           "float",     "string", "list",    "mapping",
                                           "namespace", "loop",   "macro"};
  return kNames[value.data.index()];
}

int64_t n_chars(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

size_t char_offset(std::string_view text, int64_t index) {
  size_t pos = 0;
  for (; pos < text.size(); ++pos) {
    if ((static_cast<uint8_t>(text[pos]) & 0xC0) == 0x80) continue;
    if (index-- == 0) break;
  }
  return pos;
}

}  // namespace paceline::jinja

// Values as text: what {{ }} writes, what a list shows of its items, and JSON.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "text/jinja_builtins.h"
#include "text/utf8.h"

namespace paceline::jinja {

namespace {

// As Python prints it: the shortest digits that read back as the same number.
std::string float_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  char buffer[32];
  const double size = std::fabs(x);
  const bool plain = x == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

// A string with quotes around it and what cannot be shown escaped.
Text quoted_text(const Text& text) {
  const bool has_single = text.bytes.find('\'') != std::string::npos;
  const bool has_double = text.bytes.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  Text out(std::string(1, quote));
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes[i];
    const bool user = text.from_user[i] != 0;
    const auto byte = static_cast<uint8_t>(c);
    if (c == '\n')
      out.append("\\n", user);
    else if (c == '\r')
      out.append("\\r", user);
    else if (c == '\t')
      out.append("\\t", user);
    else if (c == '\\' || c == quote)
      out.append(std::string{'\\', c}, user);
    else if (byte < 0x20 || byte == 0x7F)
      out.append(fmt::format("\\x{:02x}", byte), user);
    else
      out.append(std::string_view(&c, 1), user);
  }
  out.append(std::string_view(&quote, 1));
  return out;
}

Text json_string(const Text& text) {
  Text out("\"");
  for (size_t i = 0; i < text.size(); ++i) {
    static constexpr std::string_view kFrom = "\"\\\b\f\n\r\t";
    static constexpr std::string_view kTo = "\"\\bfnrt";
    const char c = text.bytes[i];
    const bool user = text.from_user[i] != 0;
    if (const size_t at = kFrom.find(c); at != std::string_view::npos)
      out.append(std::string{'\\', kTo[at]}, user);
    else if (static_cast<uint8_t>(c) < 0x20)
      out.append(fmt::format("\\u{:04x}", static_cast<uint8_t>(c)), user);
    else
      out.append(std::string_view(&c, 1), user);
  }
  out.append("\"");
  return out;
}

class JsonWriter {
 public:
  JsonWriter(Context& context, int indent) : context_(context), indent_(indent) {}

  Text write(const Value& value) {
    write(value, 0);
    return std::move(out_);
  }

 private:
  void write(const Value& value, int level) {
    if (!context_.spend(kWorkPerNode)) return;
    if (const Text* text = value.text()) {
      context_.spend(text->size());
      out_.append(json_string(*text));
    } else if (value.is_none()) {
      out_.append("null");
    } else if (const bool* b = std::get_if<bool>(&value.data)) {
      out_.append(*b ? "true" : "false");
    } else if (value.is_number()) {
      out_.append(to_text(context_, value));
    } else if (const List* list = value.list()) {
      open('[', list->items.empty(), level);
      for (size_t i = 0; i < list->items.size(); ++i) {
        if (i > 0) between(level);
        write(list->items[i], level + 1);
      }
      close(']', list->items.empty(), level);
    } else if (const Dict* dict = value.dict()) {
      open('{', dict->entries.empty(), level);
      for (size_t i = 0; i < dict->entries.size(); ++i) {
        if (i > 0) between(level);
        out_.append(json_string(Text(dict->entries[i].first)));
        out_.append(": ");
        write(dict->entries[i].second, level + 1);
      }
      close('}', dict->entries.empty(), level);
    } else {
      context_.fail(ErrorCode::BadFormat,
                    fmt::format("{} cannot be written as JSON", type_name(value)));
    }
  }
  void open(char bracket, bool is_empty, int level) {
    out_.append(std::string_view(&bracket, 1));
    if (!is_empty) new_line(level + 1);
  }
  void between(int level) {
    out_.append(indent_ < 0 ? ", " : ",");
    new_line(level + 1);
  }
  void close(char bracket, bool is_empty, int level) {
    if (!is_empty) new_line(level);
    out_.append(std::string_view(&bracket, 1));
  }
  void new_line(int level) {
    if (indent_ < 0) return;
    out_.append("\n");
    out_.append(std::string(static_cast<size_t>(indent_ * level), ' '));
  }

  Context& context_;
  const int indent_;
  Text out_;
};

Text sequence_text(Context& c, const List& list) {
  Text out(list.is_tuple ? "(" : "[");
  for (size_t i = 0; i < list.items.size() && !c.failed(); ++i) {
    if (i > 0) out.append(", ");
    out.append(to_repr(c, list.items[i]));
  }
  if (list.is_tuple && list.items.size() == 1) out.append(",");
  out.append(list.is_tuple ? ")" : "]");
  return out;
}

Text mapping_text(Context& c, const Dict& dict) {
  Text out("{");
  for (size_t i = 0; i < dict.entries.size() && !c.failed(); ++i) {
    if (i > 0) out.append(", ");
    out.append(quoted_text(Text(dict.entries[i].first)));
    out.append(": ");
    out.append(to_repr(c, dict.entries[i].second));
  }
  out.append("}");
  return out;
}

}  // namespace

Text to_repr(Context& c, const Value& value) {
  if (value.is_undefined()) return Text("Undefined");
  const Text* text = value.text();
  if (!text) return to_text(c, value);
  if (!c.spend(text->size() * 2)) return {};
  return quoted_text(*text);
}

Text to_text(Context& c, const Value& value) {
  if (!c.spend(kWorkPerNode)) return {};
  if (value.is_undefined()) return {};
  if (value.is_none()) return Text("None");
  if (const bool* b = std::get_if<bool>(&value.data)) return Text(*b ? "True" : "False");
  if (const auto* i = std::get_if<int64_t>(&value.data)) return Text(std::to_string(*i));
  if (const auto* d = std::get_if<double>(&value.data)) return Text(float_text(*d));
  if (const Text* text = value.text()) {
    if (!c.spend(text->size())) return {};
    return *text;
  }
  if (const List* list = value.list()) return sequence_text(c, *list);
  if (const Dict* dict = value.dict()) return mapping_text(c, *dict);
  c.fail(ErrorCode::BadFormat, fmt::format("a {} cannot be written out", type_name(value)));
  return {};
}

Text to_json(Context& context, const Value& value, int indent) {
  return JsonWriter(context, indent).write(value);
}

}  // namespace paceline::jinja

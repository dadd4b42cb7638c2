// The values that a chat template computes with: those of Python, as far as templates use them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace paceline::jinja {

// A string that remembers where each byte came from. Text of a message stays marked through every
// operation, so that special tokens inside it are never mistaken for the template's own.
struct Text {
  std::string bytes;      // valid UTF-8
  std::string from_user;  // as long as bytes: 1 where a byte came from a message, else 0

  Text() = default;
  explicit Text(std::string bytes_, bool user = false)
      : bytes(std::move(bytes_)), from_user(bytes.size(), user ? '\1' : '\0') {}

  size_t size() const { return bytes.size(); }
  void append(const Text& other) {
    bytes += other.bytes;
    from_user += other.from_user;
  }
  void append(std::string_view more, bool user = false) {
    bytes += more;
    from_user.append(more.size(), user ? '\1' : '\0');
  }
  Text part(size_t pos, size_t n = std::string::npos) const {
    Text out;
    out.bytes = bytes.substr(pos, n);
    out.from_user = from_user.substr(pos, n);
    return out;
  }
};

struct Value;
struct List;
struct Dict;
struct Loop;
struct MacroDef;

struct Undefined {
  std::string name;  // what was looked up, for the error sentence
};
struct None {};

struct Value {
  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>,
               std::shared_ptr<Dict> /* a namespace */, std::shared_ptr<const Loop>,
               const MacroDef*>
      data;

  Value() = default;
  template <class T>
  Value(T value) : data(std::move(value)) {}                                   // NOLINT: implicit
  Value(Text value) : data(std::make_shared<const Text>(std::move(value))) {}  // NOLINT: implicit

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data);
  }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_namespace() const { return is<std::shared_ptr<Dict>>(); }
  bool is_number() const { return is<bool>() || is<int64_t>() || is<double>(); }

  const Text* text() const { return get<std::shared_ptr<const Text>>(); }
  const List* list() const { return get<std::shared_ptr<const List>>(); }
  const Dict* dict() const { return get<std::shared_ptr<const Dict>>(); }
  Dict* name_space() const {
    const auto* p = std::get_if<std::shared_ptr<Dict>>(&data);
    return p ? p->get() : nullptr;
  }
  const Loop* loop() const { return get<std::shared_ptr<const Loop>>(); }
  // A boolean counts as 0 or 1.
  bool integer(int64_t& out) const;
  double number() const;  // of what is_number()

 private:
  template <class P>
  typename P::element_type* get() const {
    const auto* p = std::get_if<P>(&data);
    return p ? p->get() : nullptr;
  }
};

// Lists and dicts never change once made, and hold no namespaces, so that no cycle can arise. Their
// depth is bounded where they are made, because freeing and printing them recurse.
inline constexpr int kMaxValueDepth = 64;

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  int depth = 1;
};

struct Dict {
  std::vector<std::pair<std::string, Value>> entries;  // in order of insertion
  int depth = 1;

  const Value* find(std::string_view key) const;
  void set(std::string key, Value value);
};

// The variable `loop` inside a for.
struct Loop {
  std::shared_ptr<const List> items;
  int64_t index0 = 0;
};

// How deep a value is nested: 0 for what holds no others.
int depth_of(const Value& value);

bool is_true(const Value& value);
// "string", "list" and so on, for error sentences.
const char* type_name(const Value& value);

// Counts of characters, not bytes.
int64_t n_chars(std::string_view text);
// The byte at which character `index` starts; the size for the one behind the last.
size_t char_offset(std::string_view text, int64_t index);

}  // namespace paceline::jinja

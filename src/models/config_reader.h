// Numbers and flags of config.json or of GGUF metadata. A reader remembers the first thing that was
// wrong, so that reading can be a list of assignments, and every key that was asked for, so that a
// setting which changes the mathematics and which nobody asked for is refused by its name.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"

namespace paceline {

class ConfigReader {
 public:
  using Json = nlohmann::json;

  // nested: the object of config.json that holds the settings, where it is there ("text_config").
  explicit ConfigReader(const Checkpoint& checkpoint, const char* nested = nullptr);

  bool is_gguf() const { return metadata_ != nullptr; }
  // "llama" and the like: general.architecture of a GGUF file; empty for config.json.
  const std::string& architecture() const { return architecture_; }

  // The first fault stays.
  void fail(const std::string& what, ErrorCode code = ErrorCode::BadFormat);
  void unsupported(const std::string& what) { fail(what, ErrorCode::Unsupported); }
  const std::optional<Error>& error() const { return error_; }

  // Whether the key is there and not null. Keys of GGUF are given without the architecture.
  bool has(const char* name) const;
  // A whole number from `least` to 2^31 - 1.
  int count(const char* name, int least = 1);
  int count_or(const char* name, int other) { return has(name) ? count(name) : other; }
  // A finite number above zero.
  double positive(const char* name);
  double positive_or(const char* name, double other) { return has(name) ? positive(name) : other; }
  double positive(const Json& object, const char* name);
  bool flag(const char* name, bool other);
  std::optional<std::string> text(const char* name);
  // config.json only: an object, or a list, or none.
  const Json* object(const char* name);
  const Json* array(const char* name);
  // GGUF only: an array of whole numbers or booleans, or none.
  std::optional<std::vector<int64_t>> integers(const char* name);

  // config.json only: what holds where the file leaves the key out or says null, by the family's
  // own definition.
  void assume(const char* name, Json value);
  // config.json only: whether the key is there and null, which to some families is not the same as
  // left out.
  bool is_null(const char* name) const;
  // Refuses a text other than `wanted`; missing is right.
  void only(const char* name, std::string_view wanted);

  // Refuses settings that change what is computed, that differ from "as usual", and that nobody
  // has asked for. To be called last.
  void refuse_the_rest();

 private:
  std::string key(const char* name) const { return is_gguf() ? architecture_ + "." + name : name; }
  double checked_positive(const char* name, double value);

  std::string place_;
  std::string architecture_;
  const Metadata* metadata_;
  Json json_;
  mutable std::set<std::string, std::less<>> asked_;
  std::optional<Error> error_;
};

}  // namespace paceline

// Names of models in several files: NAME-00002-of-00005.gguf, and .safetensors likewise.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct PartName {
  std::string stem;    // "NAME"
  std::string ending;  // ".gguf"
  int number = 1;      // from 1
  int count = 1;

  std::string text() const;                                  // the name itself
  PartName with(int other) const;                            // the same with another number
  bool same_set(const PartName& other) const;                // stem, ending and count are the same
  static std::optional<PartName> of(std::string_view file);  // none for other names
};

}  // namespace paceline

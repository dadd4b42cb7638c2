// What is done to a text before it is cut and merged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct NormalizeStep {
  enum class Kind {
    Nfc,      // Unicode composition, by the reference's tables
    Replace,  // every `from`, leftmost first, by `to`
    Prepend,  // `to` in front of a text that is not empty
  };
  Kind kind = Kind::Nfc;
  std::string from, to;
};

class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizeStep> steps) : steps_(std::move(steps)) {}

  // The normalized form of `text`, which is valid UTF-8: the text itself where nothing changes,
  // else in `room`, whose old contents are lost.
  std::string_view apply(std::string_view text, std::string& room) const;

 private:
  std::vector<NormalizeStep> steps_;
};

// The canonical composition of valid UTF-8, appended to `out`.
void append_nfc(std::string_view text, std::string& out);

}  // namespace paceline

#include "text/bpe_json_steps.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace paceline {

using Json = nlohmann::json;

const Json& json_member(const Json& object, const char* key) {
  static const Json missing;
  if (!object.is_object()) return missing;
  const auto found = object.find(key);
  return found == object.end() ? missing : *found;
}
bool json_flag(const Json& object, const char* key, bool otherwise) {
  const Json& value = json_member(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}
std::string json_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

namespace {

constexpr int kDeepest = 4;  // Sequences within Sequences

Error bad(std::string message) {
  return {ErrorCode::BadFormat, "tokenizer.json: " + std::move(message)};
}
Error unsupported(std::string message) {
  return {ErrorCode::Unsupported, "tokenizer.json: " + std::move(message)};
}
std::string type_of(const Json& step) { return json_text(json_member(step, "type")); }
std::string text_of(const Json& step, const char* key) { return json_text(json_member(step, key)); }

// Calls read(step) for a step, or for each of a Sequence's under `list`.
template <class Read>
Result<void> each_step(const Json& step, const char* list, int depth, const Read& read) {
  if (type_of(step) != "Sequence" || depth == kDeepest) return read(step);
  const Json& steps = json_member(step, list);
  if (!steps.is_array()) return bad(fmt::format("a Sequence has no list of {}", list));
  for (const Json& inner : steps)
    if (auto done = each_step(inner, list, depth + 1, read); !done) return done;
  return {};
}

class Reader {
 public:
  Result<BpeSteps> read(const Json& normalizer, const Json& pre_tokenizer, const Json& decoder) {
    if (!normalizer.is_null()) {
      auto done = each_step(normalizer, "normalizers", 0,
                            [this](const Json& step) { return read_normalizer(step); });
      if (!done) return done.error();
    }
    if (!pre_tokenizer.is_null()) {
      auto done = each_step(pre_tokenizer, "pretokenizers", 0,
                            [this](const Json& step) { return read_pre_tokenizer(step); });
      if (!done) return done.error();
    }
    auto done = steps_.byte_level ? read_byte_level_decoder(decoder) : read_decoder(decoder);
    if (!done) return done.error();
    steps_.normalizer = Normalizer(std::move(normalize_));
    for (const CutStep cut : steps_.cuts) describe(name_of(cut));
    return std::move(steps_);
  }

 private:
  void describe(std::string_view what) {
    if (!steps_.description.empty()) steps_.description += ", ";
    steps_.description += what;
  }

  Result<void> read_normalizer(const Json& step) {
    using Kind = NormalizeStep::Kind;
    const std::string type = type_of(step);
    if (type == "NFC") {
      normalize_.push_back({Kind::Nfc, "", ""});
      describe("NFC");
    } else if (type == "Replace") {
      const std::string from = json_text(json_member(json_member(step, "pattern"), "String"));
      if (from.empty())
        return unsupported("the normalizer Replace without a String pattern is not known here");
      normalize_.push_back({Kind::Replace, from, text_of(step, "content")});
    } else if (type == "Prepend") {
      normalize_.push_back({Kind::Prepend, "", text_of(step, "prepend")});
    } else {
      return unsupported(
          fmt::format("the normalizer \"{}\" is not known here; known are Sequence, NFC, Replace "
                      "and Prepend",
                      shown(type)));
    }
    return {};
  }

  Result<void> read_pre_tokenizer(const Json& step) {
    const std::string type = type_of(step);
    if (steps_.byte_level || steps_.bar_spaces)
      return unsupported(fmt::format("the pre_tokenizer \"{}\" behind {} is not known here",
                                     shown(type), steps_.byte_level ? "ByteLevel" : "Metaspace"));
    if (type == "Digits") {
      if (!json_flag(step, "individual_digits"))
        return unsupported("the pre_tokenizer Digits without individual_digits is not known here");
      steps_.cuts.push_back(CutStep::Digits);
    } else if (type == "Split") {
      return read_split(step);
    } else if (type == "ByteLevel") {
      steps_.byte_level = true;
      if (json_flag(step, "add_prefix_space", true)) steps_.cuts.push_back(CutStep::PrefixSpace);
      if (json_flag(step, "use_regex", true)) steps_.cuts.push_back(CutStep::Gpt2);
    } else if (type == "Metaspace") {
      return read_metaspace(step);
    } else {
      return unsupported(
          fmt::format("the pre_tokenizer \"{}\" is not known here; known are Sequence, Digits, "
                      "Split, ByteLevel and Metaspace",
                      shown(type)));
    }
    return {};
  }

  Result<void> read_split(const Json& step) {
    const std::string behavior = text_of(step, "behavior");
    const bool inverted = json_flag(step, "invert");
    const Json& pattern = json_member(step, "pattern");
    if (json_text(json_member(pattern, "String")) == " " && behavior == "MergedWithPrevious" &&
        !inverted) {
      steps_.cuts.push_back(CutStep::AfterSpace);
      return {};
    }
    // The known patterns match every character, so that what is removed when inverted is nothing.
    const bool isolated =
        (behavior == "Isolated" && !inverted) || (behavior == "Removed" && inverted);
    if (!isolated)
      return unsupported(fmt::format(
          "the pre_tokenizer Split with behavior \"{}\"{} is not known here; Isolated is",
          shown(behavior), inverted ? ", inverted," : ""));
    const Json& regex = json_member(pattern, "Regex");
    if (!regex.is_string())
      return unsupported("the pre_tokenizer Split without a Regex pattern is not known here");
    const auto cut = cut_step_of_pattern(json_text(regex));
    if (!cut) return unsupported("pre_tokenizer Split: " + cut.error().message);
    steps_.cuts.push_back(*cut);
    return {};
  }

  Result<void> read_metaspace(const Json& step) {
    const std::string replacement = text_of(step, "replacement");
    if (replacement != kSpaceBar)
      return unsupported(fmt::format(
          "the pre_tokenizer Metaspace with replacement \"{}\" is not known here; {} is",
          shown(replacement), kSpaceBar));
    if (!steps_.cuts.empty())
      return unsupported("the pre_tokenizer Metaspace behind other steps is not known here");
    const std::string scheme = text_of(step, "prepend_scheme");
    BarSpaces bars;
    if (scheme == "first") {
      bars.prefix = BarSpaces::Prefix::First;
    } else if (scheme == "never" ||
               (scheme.empty() && !json_flag(step, "add_prefix_space", true))) {
      bars.prefix = BarSpaces::Prefix::Never;
    } else if (scheme != "always" && !scheme.empty()) {
      return unsupported(
          fmt::format("the pre_tokenizer Metaspace with prepend_scheme \"{}\" is not known here",
                      shown(scheme)));
    }
    steps_.bar_spaces = bars;
    if (json_flag(step, "split", true)) steps_.cuts.push_back(CutStep::BeforeBar);
    return {};
  }

  static Result<void> read_byte_level_decoder(const Json& decoder) {
    if (type_of(decoder) == "ByteLevel") return {};
    return unsupported(
        fmt::format("the decoder \"{}\" is not known here with the pre_tokenizer ByteLevel; "
                    "ByteLevel is",
                    shown(type_of(decoder))));
  }

  // Of a vocabulary of characters: what is done to each token, Fuse, and what is done to the text.
  Result<void> read_decoder(const Json& decoder) {
    bool fused = false;
    bool bars_become_spaces = false;
    const auto read = [&](const Json& step) -> Result<void> {
      const std::string type = type_of(step);
      if (type == "Fuse") {
        fused = true;
      } else if (type == "Replace" && !fused && !bars_become_spaces &&
                 json_text(json_member(json_member(step, "pattern"), "String")) == kSpaceBar &&
                 text_of(step, "content") == " ") {
        bars_become_spaces = true;
      } else if (type == "ByteFallback" && !fused) {
        steps_.decodes_bytes = true;
      } else if (type == "Strip" && fused && text_of(step, "content") == " " &&
                 json_member(step, "stop") == 0 &&
                 json_member(step, "start").is_number_unsigned() &&
                 json_member(step, "start") < kMostSpaces) {
        steps_.spaces_off_front += json_member(step, "start").get<int>();
      } else {
        return unsupported(fmt::format(
            "the decoder \"{}\" is not known here as it stands; known are ByteLevel with the "
            "pre_tokenizer ByteLevel, and a Sequence of Replace (\"{}\" by a space), ByteFallback, "
            "Fuse and Strip (of spaces in front)",
            shown(type), kSpaceBar));
      }
      return {};
    };
    if (auto done = each_step(decoder, "decoders", 0, read); !done) return done;
    if (!fused || !bars_become_spaces)
      return unsupported(
          "its pre_tokenizer has no ByteLevel step, and its decoder no Replace of bars by spaces "
          "with a Fuse behind it");
    return {};
  }

  static constexpr int kMostSpaces = 1000;
  std::vector<NormalizeStep> normalize_;
  BpeSteps steps_;
};

}  // namespace

Result<BpeSteps> read_bpe_steps(const Json& normalizer, const Json& pre_tokenizer,
                                const Json& decoder) {
  return Reader().read(normalizer, pre_tokenizer, decoder);
}

}  // namespace paceline

#include "apps/decode_flags.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "apps/values.h"

namespace paceline::apps {
namespace {

// A number in a range that the engine knows too; here it is refused before anything is loaded.
void number_flag(Flags& flags, const std::string& name, const std::string& placeholder,
                 double& field, double lowest, double highest, const std::string& help) {
  flags.value(
      name, placeholder,
      [&field, lowest, highest](std::string_view given) -> Result<void> {
        const auto value = parse_number(given, lowest, highest);
        if (!value) return value.error();
        field = *value;
        return {};
      },
      help);
}

// ID=VALUE,ID=VALUE with values such as 2.5, -100 and -inf.
Result<std::vector<LogitBias>> parse_biases(std::string_view text) {
  const Error bad = wants("biases such as 17=-inf,42=1.5, values from -1e30 to 1e30 or -inf", text);
  std::vector<LogitBias> biases;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view entry = text.substr(begin, comma - begin);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) return bad;
    const auto id = parse_integer(entry.substr(0, equals), 0, std::numeric_limits<TokenId>::max());
    if (!id) return bad;
    const std::string_view value = entry.substr(equals + 1);
    double number = -std::numeric_limits<double>::infinity();
    if (value != "-inf") {
      const auto parsed = parse_number(value, -kMostBias, kMostBias);
      if (!parsed) return bad;
      number = *parsed;
    }
    biases.push_back({static_cast<TokenId>(*id), number});
    begin = comma + 1;
  }
  return biases;
}

}  // namespace

void DecodeFlags::add(Flags& flags, int default_max_tokens, bool with_logprobs) {
  max_tokens = default_max_tokens;
  flags.group("Decoding");
  flags.integer("--max-tokens", max_tokens, 1, std::numeric_limits<int>::max(),
                fmt::format("tokens to write at most (default: {})", default_max_tokens));
  flags.texts("--stop", "TEXT", stop, "end before this text; may be given several times");
  flags.flag("--ignore-eos", ignore_eos, "go on behind end tokens");
  if (with_logprobs) {
    flags.integer("--logprobs", logprobs, 0, 1000,
                  "record each token's log-probability and those of the N most likely");
  }
  flags.value(
      "--temperature", "T",
      [this](std::string_view given) -> Result<void> {
        const auto value = parse_number(given, 0, kMostTemperature);
        if (!value || (*value > 0 && *value < kLeastTemperature)) {
          return wants(fmt::format("0 (greedy) or a number from {} to {}", kLeastTemperature,
                                   kMostTemperature),
                       given);
        }
        sampling.temperature = *value;
        return {};
      },
      "how freely tokens are drawn; 0: always the most likely one (default: 0)");
  flags.integer("--top-k", sampling.top_k, 0, std::numeric_limits<int>::max(),
                "draw from the N most likely (default: 0, all)");
  flags.value(
      "--top-p", "P",
      [this](std::string_view given) -> Result<void> {
        const auto value = parse_number(given, 0, 1);
        if (!value || *value == 0) return wants("a number above 0 and at most 1", given);
        sampling.top_p = *value;
        return {};
      },
      "then from the most likely that have probability P together (default: 1, all)");
  number_flag(flags, "--min-p", "P", sampling.min_p, 0, 1,
              "then from those with P times the largest probability (default: 0, all)");
  number_flag(flags, "--repetition-penalty", "X", sampling.repetition_penalty,
              kLeastRepetitionPenalty, kMostRepetitionPenalty,
              "divides the logits of tokens of prompt and output, multiplies those below 0 "
              "(default: 1, off)");
  number_flag(flags, "--presence-penalty", "X", sampling.presence_penalty, -kMostPenalty,
              kMostPenalty, "subtracted from the logits of tokens of the output (default: 0)");
  number_flag(flags, "--frequency-penalty", "X", sampling.frequency_penalty, -kMostPenalty,
              kMostPenalty, "the same for each time that they occur in it (default: 0)");
  flags.value(
      "--logit-bias", "ID=X,...",
      [this](std::string_view given) -> Result<void> {
        auto biases = parse_biases(given);
        if (!biases) return biases.error();
        sampling.logit_bias = *std::move(biases);
        return {};
      },
      "added to the logits of these tokens; -inf forbids one");
}

Result<void> DecodeFlags::check() const {
  for (const std::string& text : stop) {
    if (text.empty()) return Error{ErrorCode::BadUsage, "--stop wants some text, not ''"};
  }
  return {};
}

Request DecodeFlags::request(std::vector<TokenId> prompt, uint64_t seed) const {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.stop = stop;
  request.ignore_eos = ignore_eos;
  request.logprobs = logprobs;
  request.sampling = sampling;
  request.sampling.seed = seed;
  return request;
}

Json sampling_json(const SamplingOptions& sampling) {
  Json biases = Json::array();
  for (const LogitBias& bias : sampling.logit_bias) {
    const Json value = std::isinf(bias.value) ? Json("-inf") : Json(bias.value);
    biases.push_back(Json::array({bias.id, value}));
  }
  return Json{{"temperature", sampling.temperature},
              {"top_k", sampling.top_k},
              {"top_p", sampling.top_p},
              {"min_p", sampling.min_p},
              {"repetition_penalty", sampling.repetition_penalty},
              {"presence_penalty", sampling.presence_penalty},
              {"frequency_penalty", sampling.frequency_penalty},
              {"logit_bias", std::move(biases)}};
}

}  // namespace paceline::apps

#include "apps/decode_flags.h"

#include <fmt/core.h>

#include <limits>

namespace paceline::apps {

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
  const std::string greedy = "this version decodes greedily only; use ";
  flags.off_only("--temperature", "T", {"0"}, greedy + "0", "0: greedy");
  flags.off_only("--top-k", "N", {"0"}, greedy + "0", "0: off");
  flags.off_only("--top-p", "P", {"1"}, greedy + "1", "1: off");
  flags.off_only("--min-p", "P", {"0"}, greedy + "0", "0: off");
  const std::string plain = "this version has no penalties and biases; use ";
  flags.off_only("--repetition-penalty", "X", {"1"}, plain + "1", "1: off");
  flags.off_only("--presence-penalty", "X", {"0"}, plain + "0", "0: off");
  flags.off_only("--frequency-penalty", "X", {"0"}, plain + "0", "0: off");
  flags.off_only("--logit-bias", "ID:X", {""},
                 "this version has no penalties and biases; leave it out", "not in this version");
}

Result<void> DecodeFlags::check() const {
  for (const std::string& text : stop) {
    if (text.empty()) return Error{ErrorCode::BadUsage, "--stop wants some text, not ''"};
  }
  return {};
}

Request DecodeFlags::request(std::vector<TokenId> prompt) const {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.stop = stop;
  request.ignore_eos = ignore_eos;
  request.logprobs = logprobs;
  return request;
}

}  // namespace paceline::apps

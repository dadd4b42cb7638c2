// The flags of decoding: how long, where to stop, which token to choose.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "apps/json_file.h"
#include "engine/engine.h"

namespace paceline::apps {

struct DecodeFlags {
  int max_tokens = 256;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  int logprobs = -1;
  SamplingOptions sampling;  // but for the seed, which every command has

  void add(Flags& flags, int default_max_tokens, bool with_logprobs);
  Result<void> check() const;
  // A request for this prompt, depth and drafter still to be set.
  Request request(std::vector<TokenId> prompt, uint64_t seed) const;
};

// What a report says of how tokens were chosen; its seed stands beside it.
Json sampling_json(const SamplingOptions& sampling);

}  // namespace paceline::apps

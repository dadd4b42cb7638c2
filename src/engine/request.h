// What a request may ask for.
#pragma once

#include "engine/engine.h"
#include "spec/round.h"

namespace paceline {

struct RequestLimits {
  int vocab_size = 0;
  int context = 0;
  bool has_tokenizer = false;
  std::string no_head = {};  // why there is no draft head; empty where there is one
};

// BadUsage naming the field, or TooLarge for a prompt that leaves no room for an answer.
Result<void> check_request(const Request& request, const RequestLimits& limits);

// The same of what prompts are to begin with.
Result<void> check_beginning(std::span<const TokenId> ids, const RequestLimits& limits);

// What a round of the request has room for, with this drafter. Scripts are chains, and so is what
// is drafted for a row sink.
Depth depth_for(const Request& request, DrafterKind kind);

}  // namespace paceline

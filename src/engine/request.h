// What a request may ask for.
#pragma once

#include "engine/engine.h"

namespace paceline {

struct RequestLimits {
  int vocab_size = 0;
  int context = 0;
  bool has_tokenizer = false;
  std::string no_head = {};  // why there is no draft head; empty where there is one
};

// BadUsage naming the field, or TooLarge for a prompt that leaves no room for an answer.
Result<void> check_request(const Request& request, const RequestLimits& limits);

}  // namespace paceline

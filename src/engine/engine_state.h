// What an engine holds. Inside the box only.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace paceline {

struct Engine::State {
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::vector<TokenId> end_ids;  // ascending
  std::vector<std::string> warnings;
  std::filesystem::path path;  // empty: not made from files
  int context = 0;
  int threads = 1;
  CacheType cache = CacheType::F16;
  WeightsType weights = WeightsType::Native;
  size_t longest_token = 0;  // bytes of the longest one that is text
  TokenId longest_token_id = -1;

  // Made at first use.
  std::once_flag costs_once;
  CostModel costs;
  std::once_flag sha256_once;
  std::string sha256;
};

}  // namespace paceline

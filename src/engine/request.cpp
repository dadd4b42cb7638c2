#include "engine/request.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/beginning.h"

namespace paceline {
namespace {

Error bad(std::string message) { return {ErrorCode::BadUsage, std::move(message)}; }

Result<void> check_ids(std::span<const TokenId> ids, const char* what, int vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    return bad(fmt::format("{} holds the id {} at index {}, but the model's ids are 0 to {}", what,
                           ids[i], i, vocab_size - 1));
  }
  return {};
}

// what: "the prompt"
Result<void> check_tokens(std::span<const TokenId> ids, const char* what,
                          const RequestLimits& limits) {
  if (ids.empty()) return bad(fmt::format("{} is empty; at least one token is needed", what));
  if (auto ok = check_ids(ids, what, limits.vocab_size); !ok) return ok;
  if (ids.size() < static_cast<size_t>(limits.context)) return {};
  return Error{ErrorCode::TooLarge,
               fmt::format("{} has {} tokens, which leaves no room for an answer in a context of "
                           "{}; shorten it or ask for a larger context",
                           what, ids.size(), limits.context)};
}

}  // namespace

Result<void> check_beginning(std::span<const TokenId> ids, const RequestLimits& limits) {
  return check_tokens(ids, "the beginning of prompts", limits);
}

Result<void> check_request(const Request& request, const RequestLimits& limits) {
  if (auto prompt = check_tokens(request.prompt, "the prompt", limits); !prompt) return prompt;
  if (auto ids = check_ids(request.script, "the script of drafts", limits.vocab_size); !ids) {
    return ids;
  }
  if (request.beginning != nullptr) {
    const auto begins = request.beginning->ids();
    if (begins.size() >= request.prompt.size() ||
        !std::equal(begins.begin(), begins.end(), request.prompt.begin()))
      return bad("the prompt does not go on from the beginning that was read for it");
  }
  if (request.max_tokens < 1) {
    return bad(fmt::format("max_tokens should be at least 1, but is {}", request.max_tokens));
  }
  if (request.depth != kAutoDepth && (request.depth < 0 || request.depth > kMaxDepth)) {
    return bad(
        fmt::format("the depth should be 0 to {} or auto, but is {}", kMaxDepth, request.depth));
  }
  if (request.tree != kAutoTree && (request.tree < 0 || request.tree > kMaxTree)) {
    return bad(fmt::format("a tree should have 0 to {} drafts, but is to have {}", kMaxTree,
                           request.tree));
  }
  if (request.tree > 0 && request.drafter == DrafterKind::Scripted)
    return bad("a script of drafts is a chain; ask for a tree of 0 drafts");
  if (request.drafter == DrafterKind::Mtp && !limits.no_head.empty()) return bad(limits.no_head);
  if (request.logprobs < -1 || request.logprobs > limits.vocab_size) {
    return bad(fmt::format("logprobs should be 0 to {} (the vocabulary), but is {}",
                           limits.vocab_size, request.logprobs));
  }
  if (auto ok = check_sampling(request.sampling, limits.vocab_size); !ok) return ok;
  for (const std::string& stop : request.stop) {
    if (stop.empty()) return bad("a stop string is empty; it would end every text at once");
  }
  if (!request.stop.empty() && !limits.has_tokenizer) {
    return bad("stop strings need a tokenizer, and the model has none");
  }
  return {};
}

Depth depth_for(const Request& request, DrafterKind kind) {
  const bool automatic = request.depth == kAutoDepth;
  Depth depth = {.limit = automatic ? kMaxDepth : request.depth};
  if (kind == DrafterKind::None || kind == DrafterKind::Scripted || request.row_sink != nullptr)
    return depth;
  depth.nodes = request.tree == kAutoTree ? (automatic ? kMaxTree : 0) : request.tree;
  return depth;
}

}  // namespace paceline

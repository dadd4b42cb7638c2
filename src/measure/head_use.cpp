#include "measure/head_use.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace paceline::measure {
namespace {

using Tokens = std::vector<TokenId>;

// Sees what was drafted.
class DraftedTokens final : public RowSink {
 public:
  explicit DraftedTokens(Tap tap) : tap_(tap) {}
  Tap tap() const override { return tap_; }
  void rows(std::span<const TokenId> /*next*/, Mat<const float> /*hidden*/) override {}
  void chosen(TokenId /*id*/, bool /*own_top1*/) override {}
  void drafted(std::span<const Draft> drafts, int /*n_accepted*/) override {
    tokens.push_back(drafts[0].token);
  }

  Tokens tokens;

 private:
  Tap tap_;
};

}  // namespace

const char* to_string(HeadUse::Verdict verdict) {
  constexpr const char* kNames[] = {"useful", "useless", "constant", "unclear"};
  return kNames[static_cast<int>(verdict)];
}

double least_share(int64_t hits, int64_t n) {
  if (n == 0) return 0;
  constexpr double kZ = 1.96;
  const auto count = static_cast<double>(n);
  const double share = static_cast<double>(hits) / count;
  const double middle = share + kZ * kZ / (2 * count);
  const double width = kZ * std::sqrt(share * (1 - share) / count + kZ * kZ / (4 * count * count));
  return (middle - width) / (1 + kZ * kZ / count);
}

Result<std::vector<Tokens>> head_use_prompts(const Engine& engine) {
  std::vector<Tokens> prompts;
  if (engine.tokenizer() == nullptr) {
    const int n_words = engine.model().info().vocab_size;
    for (const int step : {0, 1, 2}) {
      Tokens ids;
      for (int i = 0; i < 48; ++i)
        ids.push_back((step == 0 ? 7 * (i % 6) : i * i * step + 3 * i) % n_words);
      prompts.push_back(std::move(ids));
    }
    return prompts;
  }
  const char* const texts[] = {
      "Repeat this line five times: red fox, blue heron, grey seal, white owl, brown hare.",
      "Describe a harbour town on the morning after a storm.",
      "Explain step by step how to change the tyre of a bicycle."};
  for (const char* text : texts) {
    const ChatMessage message{"user", text};
    auto ids = engine.chat_template() != nullptr ? engine.encode_chat({&message, 1})
                                                 : engine.encode_text(text);
    if (!ids) return ids.error();
    prompts.push_back(*std::move(ids));
  }
  return prompts;
}

Result<HeadUse> look_at_head(const Engine& engine, std::span<const Tokens> prompts, int max_tokens,
                             const std::function<bool()>& stop) {
  if (engine.head() == nullptr) return Error{ErrorCode::BadUsage, engine.no_head()};
  HeadUse use;
  DraftedTokens drafted(engine.head()->info.config.tap);
  std::map<TokenId, int64_t> counts;
  int64_t written = 0;
  for (const Tokens& prompt : prompts) {
    auto generation = engine.start({.prompt = prompt,
                                    .max_tokens = max_tokens,
                                    .depth = 1,
                                    .drafter = DrafterKind::Mtp,
                                    .allow_inexact = true,
                                    .row_sink = &drafted});
    if (!generation) return generation.error();
    while (!generation->done()) {
      if (stop && stop()) return Error{ErrorCode::Interrupted, "interrupted"};
      if (auto stepped = generation->step(); !stepped) return stepped.error();
    }
    const GenerationStats& stats = generation->stats();
    use.drafted += stats.drafted_by_depth[0];
    use.accepted += stats.accepted_by_depth[0];
    for (const EmittedToken& token : generation->tokens()) ++counts[token.id];
    written += static_cast<int64_t>(generation->tokens().size());
  }
  int64_t most = 0;
  for (const auto& [token, count] : counts) most = std::max(most, count);
  use.commonest = written > 0 ? static_cast<double>(most) / static_cast<double>(written) : 0;
  const Tokens& tokens = drafted.tokens;
  const auto same = [&](TokenId token) { return token == tokens.front(); };
  if (!tokens.empty() && std::ranges::all_of(tokens, same)) use.constant = tokens.front();

  if (least_share(use.accepted, use.drafted) > use.commonest)
    use.verdict = HeadUse::Verdict::Useful;
  else if (use.constant && use.commonest < 1)
    use.verdict = HeadUse::Verdict::Constant;
  else if (use.drafted == 0 || use.commonest > 0.5)
    use.verdict = HeadUse::Verdict::Unclear;
  else
    use.verdict = HeadUse::Verdict::Useless;
  return use;
}

}  // namespace paceline::measure

#include "measure/forced.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace paceline::measure {
namespace {

constexpr int kPromptChunk = 64;

struct Choice {
  TokenId id = 0;
  float gap = 0;
};

// The largest logit, the first of equals, and how far the next is below it.
Choice choice_of(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  float next = -std::numeric_limits<float>::infinity();
  for (auto it = logits.begin(); it != logits.end(); ++it)
    if (it != best) next = std::max(next, *it);
  return {static_cast<TokenId>(best - logits.begin()), *best - next};
}

int rank_of(std::span<const float> logits, TokenId id) {
  const float own = logits[id];
  int rank = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > own || (logits[i] == own && static_cast<TokenId>(i) < id)) ++rank;
  return rank;
}

// Calls see(i, logits) for every i of the output: the logits that token i is chosen from.
Result<void> read_forced(const Engine& engine, std::span<const TokenId> prompt,
                         std::span<const TokenId> ids, int width, const std::function<bool()>& stop,
                         const std::function<void(int, std::span<const float>)>& see) {
  check(!prompt.empty() && width >= 1, "a text behind a prompt, in blocks");
  const Model& model = engine.model();
  const int total = static_cast<int>(prompt.size() + ids.size());
  if (total > engine.context())
    return Error{ErrorCode::TooLarge, "prompt and output are longer than the context"};
  auto state = model.make_state(total, engine.cache_type());
  if (!state) return state.error();
  auto workspace = model.make_workspace(std::max(kPromptChunk, width), width);
  if (!workspace) return workspace.error();
  Block block(std::max(kPromptChunk, width));

  // The prompt's last token is the first row that chooses, in a block like those behind it.
  std::vector<TokenId> text(prompt.begin(), prompt.end());
  text.insert(text.end(), ids.begin(), ids.end());
  const int first = static_cast<int>(prompt.size()) - 1;
  const int end = total - 1;  // nothing is chosen behind the last token
  for (int at = 0; at < end;) {
    if (stop && stop()) return Error{ErrorCode::Interrupted, "interrupted"};
    const int n = at < first ? std::min(kPromptChunk, first - at) : std::min(width, end - at);
    block.reset(at);
    for (int i = 0; i < n; ++i) block.add(text[at + i]);
    const bool chooses = at >= first;
    const auto out =
        model.forward(block, **state, chooses ? LogitRows::All : LogitRows::None, **workspace);
    if (chooses)
      for (int i = 0; i < n; ++i) see(at + i - first, out.logits.row(i));
    (*state)->commit(n);
    at += n;
  }
  return {};
}

}  // namespace

int64_t Forced::all_differing() const {
  return std::accumulate(differing.begin(), differing.end(), int64_t{0});
}

double Forced::rate() const {
  return positions > 0 ? static_cast<double>(all_differing()) / static_cast<double>(positions) : 0;
}

Result<void> compare_forced(const Engine& engine, std::span<const TokenId> prompt,
                            std::span<const TokenId> ids, int width_a, int width_b, Forced& forced,
                            const std::function<bool()>& stop) {
  forced.flips.clear();
  std::vector<Choice> chosen(ids.size());
  auto read =
      read_forced(engine, prompt, ids, width_a, stop,
                  [&](int i, std::span<const float> logits) { chosen[i] = choice_of(logits); });
  if (!read) return read;
  read = read_forced(engine, prompt, ids, width_b, stop, [&](int i, std::span<const float> logits) {
    const TokenId other = choice_of(logits).id;
    const Choice& mine = chosen[i];
    const auto above = std::upper_bound(Forced::kGaps.begin(), Forced::kGaps.end(), mine.gap);
    const auto bucket = std::max<ptrdiff_t>(above - Forced::kGaps.begin() - 1, 0);
    ++forced.positions;
    ++forced.by_gap[bucket];
    if (other == mine.id) return;
    ++forced.differing[bucket];
    forced.flips.push_back({.position = i,
                            .a = mine.id,
                            .b = other,
                            .gap = mine.gap,
                            .rank_of_a = rank_of(logits, mine.id)});
  });
  if (!read || forced.flips.empty()) return read;
  // The ranks the other way round want the first width's logits again.
  auto flip = forced.flips.begin();
  return read_forced(engine, prompt, ids, width_a, stop, [&](int i, std::span<const float> logits) {
    if (flip == forced.flips.end() || flip->position != i) return;
    flip->rank_of_b = rank_of(logits, flip->b);
    ++flip;
  });
}

}  // namespace paceline::measure

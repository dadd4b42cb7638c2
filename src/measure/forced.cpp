#include "measure/forced.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "io/crc32c.h"
#include "kernels/top_logits.h"
#include "measure/reading.h"

namespace paceline::measure {
namespace {

struct Choice {
  TokenId id = 0;
  float gap = 0;     // how far the next is below it
  uint32_t crc = 0;  // of the whole row
};

Choice choice_of(std::span<const float> logits) {
  std::vector<std::pair<TokenId, float>> top;
  top_logits(logits, 2, top);
  check(!top.empty(), "a vocabulary has words");
  const float next = top.size() > 1 ? top[1].second : -std::numeric_limits<float>::infinity();
  return {top[0].first, top[0].second - next, crc32c(std::as_bytes(logits))};
}

int rank_of(std::span<const float> logits, TokenId id) {
  const float own = logits[id];
  int rank = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > own || (logits[i] == own && static_cast<TokenId>(i) < id)) ++rank;
  return rank;
}

// The prompt's last token is the first row that chooses.
Result<void> read_forced(const Engine& engine, std::span<const TokenId> prompt,
                         std::span<const TokenId> ids, int width, const std::function<bool()>& stop,
                         const SeeLogits& see) {
  check(!prompt.empty() && !ids.empty(), "a text behind a prompt");
  std::vector<TokenId> text(prompt.begin(), prompt.end());
  text.insert(text.end(), ids.begin(), ids.end());
  const int first = static_cast<int>(prompt.size()) - 1;
  return read_given(
      engine, text, {.first = first, .width = width, .drafts_fall = true, .stop = stop},
      [&](int position, std::span<const float> logits) { see(position - first, logits); });
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
    const Choice other = choice_of(logits);
    const Choice& mine = chosen[i];
    const auto above = std::upper_bound(Forced::kGaps.begin(), Forced::kGaps.end(), mine.gap);
    const auto bucket = std::max<ptrdiff_t>(above - Forced::kGaps.begin() - 1, 0);
    ++forced.positions;
    ++forced.by_gap[bucket];
    if (other.crc != mine.crc) ++forced.moved;
    if (other.id == mine.id) return;
    ++forced.differing[bucket];
    forced.flips.push_back({.position = i,
                            .a = mine.id,
                            .b = other.id,
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

#include "spec/sampling.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/sampling.h"

namespace paceline {

Sampler::Sampler(const SamplingOptions& options, int vocab_size, const KernelTable& table)
    : table_(table),
      seed_(options.seed),
      temperature_(static_cast<float>(options.temperature)),
      edits_(options, vocab_size),
      filter_(options, vocab_size, table) {
  if (temperature_ > 0) maxima_.resize((vocab_size + kDrawGroup - 1) / kDrawGroup);
}

void Sampler::begin(std::span<const TokenId> prompt, int capacity) {
  edits_.begin(prompt, capacity);
}

TokenId Sampler::draw(std::span<float> logits, int position, std::span<const TokenId> drafts) {
  if (!edits_.any()) return draw_edited(logits, position);
  edits_.add(drafts);
  edits_.apply(logits);
  const TokenId token = draw_edited(logits, position);
  edits_.undo(logits);
  edits_.remove(drafts);
  return token;
}

TokenId Sampler::draw_edited(std::span<const float> logits, int position) {
  const int n = static_cast<int>(logits.size());
  if (temperature_ == 0) return table_.argmax(logits.data(), n);
  check(maxima_.size() == (logits.size() + kDrawGroup - 1) / kDrawGroup,
        "a sampler sees rows of its vocabulary");
  table_.group_max(logits.data(), n, maxima_.data());
  const auto top = std::max_element(maxima_.begin(), maxima_.end());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (!(*top > -kInfinity && *top < kInfinity)) return -1;

  const RowScale row = {.top = *top, .scale = 1.0f / temperature_};
  const RowFilter::Limit limit = filter_.limit(logits, maxima_, row);
  const DrawArgs args = {.row = row,
                         .least = limit.least,
                         .last_tie = limit.last_tie,
                         .key = noise_key(seed_, position)};
  Drawn best;
  const auto visit = [&](size_t group) {
    const int first = static_cast<int>(group) * kDrawGroup;
    table_.draw(logits.data(), first, std::min(first + kDrawGroup, n), args, &best);
  };
  // The most likely group first: with its score to beat, others are passed over.
  const auto likely = static_cast<size_t>(top - maxima_.begin());
  visit(likely);
  for (size_t group = 0; group < maxima_.size(); ++group) {
    const float x = (maxima_[group] - row.top) * row.scale;
    if (group == likely || x < limit.least || x + kMostNoise < best.score) continue;
    visit(group);
  }
  return best.id;
}

}  // namespace paceline

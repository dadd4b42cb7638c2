#include "spec/row_filter.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "kernels/rope.h"
#include "spec/sort_keys.h"

namespace paceline {
namespace {

// A slice reaches down to the largest logit of so many groups, in sixteenths of them: each of these
// groups gives one id at least. Further down the maxima say little, and a slice reaches so much
// deeper than the one before.
constexpr int kSixteenths[] = {1, 4, 14};
constexpr float kDeeper = 1.35f;
constexpr float kDeepest = -100.0f;  // e^x is 0 from -87.3 on
constexpr double kNoMinP = 1e-300;   // below it the share of nothing that float32 tells from 0
constexpr float kLowest = std::numeric_limits<float>::lowest();

}  // namespace

RowFilter::RowFilter(const SamplingOptions& options, int vocab_size, const KernelTable& table)
    : table_(table),
      top_k_(options.top_k < vocab_size ? options.top_k : 0),
      top_p_(static_cast<float>(options.top_p)),
      log_min_p_(options.min_p > kNoMinP ? static_cast<float>(log_double(options.min_p))
                                         : -std::numeric_limits<float>::infinity()) {
  if (top_k_ == 0 && top_p_ >= 1) return;
  keys_.resize(vocab_size + kDrawGroup);  // gather wants room for a whole group
  scratch_.resize(vocab_size);
  ordered_.resize((vocab_size + kDrawGroup - 1) / kDrawGroup);
}

RowFilter::Limit RowFilter::limit(std::span<const float> logits, std::span<const float> maxima,
                                  const RowScale& scale) {
  Limit limit;
  if (top_k_ > 0 || top_p_ < 1) {
    const Row row{logits, maxima, scale};
    start(row);
    if (top_k_ > 0) {
      while (n_sorted_ < top_k_ && next_slice(row)) continue;
      if (n_sorted_ > top_k_) n_sorted_ = top_k_;
      limit = at(n_sorted_ - 1);
    }
    if (top_p_ < 1) keep_top_p(row, top_k_ > 0, limit);
  }
  if (log_min_p_ > limit.least) limit = {.least = log_min_p_};
  return limit;
}

void RowFilter::keep_top_p(const Row& row, bool after_top_k, Limit& limit) {
  float total = 0;
  if (after_top_k) {
    for (size_t i = 0; i < n_sorted_;)
      for (const float e : exps_from(i)) total = total + e, ++i;
  } else {
    total = table_.exp_sum(row.logits.data(), static_cast<int>(row.logits.size()), row.scale);
  }
  const float wanted = top_p_ * total;
  float sum = 0;
  for (size_t i = 0;;) {
    if (i == n_sorted_ && (after_top_k || !next_slice(row))) return;  // rounding: all of them
    for (const float e : exps_from(i)) {
      sum = sum + e;
      if (sum >= wanted) {
        limit = at(i);
        return;
      }
      ++i;
    }
  }
}

// e^x of those sorted from `index` on, at most exps_.size() of them.
std::span<const float> RowFilter::exps_from(size_t index) {
  const size_t n = std::min(exps_.size(), n_sorted_ - index);
  for (size_t i = 0; i < n; ++i) exps_[i] = at(index + i).least;
  table_.exp_all(exps_.data(), static_cast<int>(n), exps_.data());
  return std::span(exps_).first(n);
}

void RowFilter::start(const Row& row) {
  check(row.logits.size() + kDrawGroup == keys_.size() && row.maxima.size() == ordered_.size(),
        "a filter sees rows of its vocabulary");
  std::copy(row.maxima.begin(), row.maxima.end(), ordered_.begin());
  n_sorted_ = n_placed_ = 0;
  n_slices_ = 0;
  below_ = 1;  // x is 0 at most
}

// Sorts the next slice in. False when there is none.
bool RowFilter::next_slice(const Row& row) {
  const size_t before = n_sorted_;
  while (n_sorted_ == before) {
    if (below_ <= kLowest) return false;
    const float least = next_least(row);
    if (least >= below_) continue;
    const int n = static_cast<int>(row.logits.size());
    for (size_t group = 0; group < row.maxima.size(); ++group) {
      if ((row.maxima[group] - row.scale.top) * row.scale.scale < least) continue;
      const int first = static_cast<int>(group) * kDrawGroup;
      n_sorted_ += table_.gather(row.logits.data(), first, std::min(first + kDrawGroup, n),
                                 row.scale, least, below_, keys_.data() + n_sorted_);
    }
    below_ = least;
  }
  sort_keys(std::span(keys_).subspan(before, n_sorted_ - before), scratch_);
  return true;
}

// Down to where the next slice reaches; in the end to all that is finite.
float RowFilter::next_least(const Row& row) {
  if (n_slices_ >= static_cast<int>(std::size(kSixteenths)))
    return below_ < 0 && below_ > kDeepest ? below_ * kDeeper : kLowest;
  const size_t rank = std::max<size_t>(1, ordered_.size() * kSixteenths[n_slices_++] / 16);
  const auto place = [&](size_t n) { return ordered_.begin() + static_cast<std::ptrdiff_t>(n); };
  if (rank > n_placed_) {
    std::nth_element(place(n_placed_), place(rank - 1), ordered_.end(), std::greater<>());
    n_placed_ = rank;
  }
  return std::max((ordered_[rank - 1] - row.scale.top) * row.scale.scale, kLowest);
}

RowFilter::Limit RowFilter::at(size_t index) const {
  const uint64_t key = keys_[index];
  return {.least = -std::bit_cast<float>(static_cast<uint32_t>(key >> 32)),
          .last_tie = static_cast<int>(static_cast<uint32_t>(key))};
}

}  // namespace paceline

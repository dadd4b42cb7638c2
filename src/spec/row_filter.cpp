#include "spec/row_filter.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "kernels/rope.h"

namespace paceline {
namespace {

// A slice reaches down to the largest logit of so many groups, in sixteenths of them. Each of these
// groups gives one id at least; near the end a step down takes in many of each.
constexpr int kSixteenths[] = {1, 4, 9, 14};
constexpr double kNoMinP = 1e-300;  // below it the share of nothing that float32 tells from 0
constexpr float kLowest = std::numeric_limits<float>::lowest();

}  // namespace

RowFilter::RowFilter(const SamplingOptions& options, int vocab_size, const KernelTable& table)
    : table_(table),
      top_k_(options.top_k < vocab_size ? options.top_k : 0),
      top_p_(static_cast<float>(options.top_p)),
      log_min_p_(options.min_p > kNoMinP ? static_cast<float>(log_double(options.min_p))
                                         : -std::numeric_limits<float>::infinity()) {
  if (top_k_ == 0 && top_p_ >= 1) return;
  keys_.resize(vocab_size);
  exps_.resize(vocab_size);
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
    exp_up_to(n_sorted_);
    for (size_t i = 0; i < n_sorted_; ++i) total = total + exps_[i];
  } else {
    total = table_.exp_sum(row.logits.data(), static_cast<int>(row.logits.size()), row.scale);
  }
  const float wanted = top_p_ * total;
  float sum = 0;
  for (size_t i = 0;; ++i) {
    if (i == n_sorted_ && (after_top_k || !next_slice(row))) return;  // rounding: all of them
    exp_up_to(n_sorted_);
    sum = sum + exps_[i];
    if (sum >= wanted) {
      limit = at(i);
      return;
    }
  }
}

void RowFilter::start(const Row& row) {
  check(row.logits.size() == keys_.size() && row.maxima.size() == ordered_.size(),
        "a filter sees rows of its vocabulary");
  std::copy(row.maxima.begin(), row.maxima.end(), ordered_.begin());
  n_sorted_ = n_exps_ = n_placed_ = 0;
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
  std::sort(keys_.begin() + static_cast<std::ptrdiff_t>(before),
            keys_.begin() + static_cast<std::ptrdiff_t>(n_sorted_));
  return true;
}

// Down to where the next slice reaches; in the end to all that is finite.
float RowFilter::next_least(const Row& row) {
  if (n_slices_ >= static_cast<int>(std::size(kSixteenths))) return kLowest;
  const size_t rank = std::max<size_t>(1, ordered_.size() * kSixteenths[n_slices_++] / 16);
  const auto place = [&](size_t n) { return ordered_.begin() + static_cast<std::ptrdiff_t>(n); };
  if (rank > n_placed_) {
    std::nth_element(place(n_placed_), place(rank - 1), ordered_.end(), std::greater<>());
    n_placed_ = rank;
  }
  return std::max((ordered_[rank - 1] - row.scale.top) * row.scale.scale, kLowest);
}

void RowFilter::exp_up_to(size_t count) {
  if (n_exps_ >= count) return;
  for (size_t i = n_exps_; i < count; ++i) exps_[i] = at(i).least;
  table_.exp_all(&exps_[n_exps_], static_cast<int>(count - n_exps_), &exps_[n_exps_]);
  n_exps_ = count;
}

RowFilter::Limit RowFilter::at(size_t index) const {
  const uint64_t key = keys_[index];
  return {.least = -std::bit_cast<float>(static_cast<uint32_t>(key >> 32)),
          .last_tie = static_cast<int>(static_cast<uint32_t>(key))};
}

}  // namespace paceline

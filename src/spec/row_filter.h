// Top-k, top-p and min-p: which ids of a row may be drawn.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/table.h"
#include "spec/sampling_options.h"

namespace paceline {

// The ids in the order of their x = (logit - top) / temperature, ties by id, have a prefix that
// remains:
//   top-k   the first k
//   top-p   of these, the shortest prefix whose sum of e^x, added one by one in float32, reaches
//           top_p times the sum of all of these: the k added one by one, or without top-k the whole
//           row's, in spans of 1,024 ids
//   min-p   of these, x >= log(min_p): the largest has e^x = 1, so no sum is needed
// So a last value, and the last id among those equal to it, say all: three filters are one limit.
//
// Only as much of the order is made as is asked for: slices of the row, the largest first, cut at
// quantiles of the groups' maxima, further down at multiples of the last cut.
class RowFilter {
 public:
  RowFilter(const SamplingOptions& options, int vocab_size, const KernelTable& table);

  struct Limit {
    float least = -std::numeric_limits<float>::infinity();
    int last_tie = std::numeric_limits<int>::max();  // of ids with x == least
  };
  // maxima: of each kDrawGroup ids. The row has a finite top. Allocates nothing.
  Limit limit(std::span<const float> logits, std::span<const float> maxima, const RowScale& scale);

 private:
  struct Row {
    std::span<const float> logits;
    std::span<const float> maxima;
    RowScale scale;
  };
  void start(const Row& row);
  bool next_slice(const Row& row);
  float next_least(const Row& row);
  Limit at(size_t index) const;
  std::span<const float> exps_from(size_t index);
  void keep_top_p(const Row& row, bool after_top_k, Limit& limit);

  const KernelTable& table_;
  size_t top_k_;  // 0: off
  float top_p_;
  float log_min_p_;

  // Of the row at hand: what is sorted so far, as |x| above the id.
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> scratch_;
  std::array<float, 64> exps_;  // e^x of a few
  size_t n_sorted_ = 0;
  float below_ = 0;  // x of what is not sorted yet lies below
  int n_slices_ = 0;
  size_t n_placed_ = 0;         // maxima that stand in front of the smaller ones
  std::vector<float> ordered_;  // maxima, on the way to being ordered
};

}  // namespace paceline

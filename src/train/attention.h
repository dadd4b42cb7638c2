// Attention of training, forward and back, over whole sequences at every depth of the draft.
//
// Row p of depth s sees the keys of depth `base` of rows <= p, and of its own row those of depths
// base + 1 .. s: what a draft chain sees when it is served. With base = s that is plain causal
// attention among the rows of one depth, as public recipes train.
//
//   out[p, head] = sum of softmax(q . k / sqrt(head_dim)) v      over the keys that p sees
//
// Scores never stand in memory for more than a block of rows of one head a thread. Work is shared
// out by sequence and key head, so bits do not depend on the number of threads.
#pragma once

#include <span>
#include <vector>

#include "train/product.h"

namespace paceline::train {

// A run of rows that belong to one sequence.
struct Segment {
  int first = 0;
  int rows = 0;
};

struct AttentionShape {
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
};

// The rows of one depth: q, out (rows, n_heads * head_dim), k, v (rows, n_kv_heads * head_dim),
// log_sums (rows, n_heads) kept from forward for the way back.
struct AttentionRows {
  Mat<float> q, k, v, out, log_sums;
  Mat<float> d_q, d_k, d_v, d_out;
};

// Memory of the threads, taken as it is needed and kept.
class AttentionScratch {
 public:
  struct Thread {
    std::vector<uint32_t> k_rows, k_columns, v_rows, v_columns, left, block;
    std::vector<float> scores, d_scores;
  };
  Thread& of(int thread) { return threads_[thread]; }
  void use(int threads) {
    if (std::ssize(threads_) < threads) threads_.resize(threads);
  }

 private:
  std::vector<Thread> threads_;
};

// depths[0] is depth 1. Sets out and log_sums of depths[depth - 1].
void attend(std::span<const Segment> segments, std::span<const AttentionRows> depths, int base,
            int depth, const AttentionShape& shape, AttentionScratch& scratch, const Tools& tools);

// From d_out of depths[depth - 1]: sets its d_q, and adds to d_k and d_v of every depth that it
// sees.
void attend_back(std::span<const Segment> segments, std::span<const AttentionRows> depths, int base,
                 int depth, const AttentionShape& shape, AttentionScratch& scratch,
                 const Tools& tools);

}  // namespace paceline::train

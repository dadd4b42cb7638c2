// One layer of a dense decoder, as the trunk and its draft heads compute it, and what they share.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/mat.h"
#include "base/memory.h"
#include "base/result.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "kernels/matmul.h"
#include "models/dense_config.h"
#include "models/dense_weights.h"
#include "models/kv_cache.h"

namespace paceline {

// A dense trunk after loading; const from then on.
struct DenseTrunk {
  DenseConfig config;
  DenseWeights weights;
  std::unique_ptr<ThreadPool> pool;
  Kernels kernels;
  float score_scale = 0;
  float embedding_scale = 1;
  // Radians a position, (head_dim / 2): of all layers, or of full and of sliding ones.
  std::vector<std::vector<double>> frequencies;

  // h (dim): the embedding of a token.
  void embed(TokenId token, std::span<float> h) const;
  // Which of the rotations a layer has.
  int rotation_of(int layer) const {
    return frequencies.size() > 1 && config.layer_slides(layer) ? 1 : 0;
  }
};

// A part of a workspace's memory.
struct FloatBuffer {
  float** where;
  size_t floats;
};

// Takes memory for all of them; no two share a cache line.
Result<HugeBuffer> take_buffers(std::span<const FloatBuffer> buffers);

// Activations of the layers of one pass. Rows of all sequences stand one behind another.
struct DenseRows {
  // Room for max_rows rows, and for what the caller needs besides. widest: inputs of the widest
  // product that runs on these rows, those of the layers left aside.
  Result<void> take(const DenseTrunk& trunk, int max_rows, int widest,
                    std::span<const FloatBuffer> more);

  int limit = 0;
  size_t attend_scratch_per_thread = 0;
  Kernels kernels;  // of the pass under way
  HugeBuffer memory;
  Activations prepared;
  Activations gated;   // those of the feed-forward's last product, prepared by columns as they come
  float* h = nullptr;  // (rows, dim), the residual stream
  float* x = nullptr;  // (rows, dim), between two steps
  float *q, *k, *v, *attended, *gate, *up, *attend_scratch;
  float *cos, *sin;                      // (kinds of rotation, rows, head_dim / 2)
  std::vector<AttendArgs> attend_parts;  // one for each sequence
};

// One sequence's rows of a pass: those of its open block from first_row on.
struct LayerPart {
  KvCache* cache;
  const Block* block;
  int first_row = 0;

  int rows() const { return block->rows() - first_row; }
  int position(int row) const { return block->positions()[first_row + row]; }
};

// What a layer's attention needs to know besides its weights.
struct LayerPlace {
  int cache_layer = 0;
  int rotation = 0;
};

// A projection's result, with its bias where it has one.
Product product(const PackedMatrix& w, Mat<float> y, const std::vector<float>& bias,
                Store store = Store::Overwrite);

// Cosines and sines of every kind of rotation for the row that stands at `position`.
void set_angles(const DenseTrunk& trunk, int row, int position, DenseRows& s);

// h += attention of one layer. Keys and values of all rows go into the caches, provisionally; what
// comes out is computed for the last n_out rows alone, all of them where there are several parts.
void attention(const DenseTrunk& trunk, const DenseLayer& w, LayerPlace place,
               std::span<const LayerPart> parts, int rows, int n_out, DenseRows& s);

// h += feed-forward of one layer, of `rows` rows from `first` on.
void feed_forward(const DenseTrunk& trunk, const DenseLayer& w, int first, int rows, DenseRows& s);

}  // namespace paceline

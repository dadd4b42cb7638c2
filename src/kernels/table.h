// The kernels of one instruction set, as plain functions over pointers.
//
// Shapes are checked by the front files (matmul.h, attention.h, ops.h); what stands here is only
// what differs between instruction sets. All tables give the same bits. kernels/reference.h holds
// the definition of each in plain loops. No header of the standard library with code in it is
// included here: kernel files must not instantiate any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/numerics.h"
#include "base/types.h"

namespace paceline {

// Types of weights that a product can stream.
enum class WeightType { F32, BF16, F16, Q8_0, Q4_0, Q4_1 };
inline constexpr int kTileOutputs = 16;  // outputs side by side in a packed tile
inline constexpr int kQuantBlock = 32;   // inputs that share a scale
inline constexpr int kRowGroup = 16;     // activation rows that are interleaved with each other
inline constexpr int kBandTiles = 4;     // tiles of float weights that stand line by line
inline constexpr int kSplitChunk = 32;   // inputs that a bf16 tile takes at once
inline constexpr int kSpan = 64;         // positions whose attention is summed together
inline constexpr int kKeyTile = 16;      // positions side by side in the key cache
inline constexpr int kMaxQueries = 4;    // queries that one call attends for side by side

enum class CacheElement { F16, BF16, F32 };

// What to do with a finished product.
enum class Store {
  Overwrite,  // y = product + bias
  Add,        // y = y + (product + bias)
};

// A product of `rows` activation rows with consecutive weight tiles.
struct MatmulArgs {
  // Activations in groups of up to kRowGroup rows.
  //   f32        [group][k][row]
  //   quantised  int8 [group][block][row][32]
  //   split      bf16 [group][chunk of 32 inputs][row, high parts then low parts][32]
  const void* x = nullptr;
  const float* x_scale = nullptr;       // quantised: d, [group][block][row]
  const float* x_scaled_sum = nullptr;  // d * sum of q
  const int32_t* x_sum = nullptr;       // sum of q
  int rows = 0;
  int n_in = 0;  // a whole number of blocks for quantised types

  const std::byte* w = nullptr;  // the packed matrix, see kernels/packed.h
  size_t tile_bytes = 0;
  int n_out = 0;

  float* y = nullptr;  // row r at y + r * y_stride
  int y_stride = 0;
  Store store = Store::Overwrite;
  const float* bias = nullptr;  // n_out values, or none
};

// Attention of one block of one sequence over one layer's cache. The cache is a list of pages of
// kSpan slots each, so that sequences can share those that they have in common.
struct AttendArgs {
  const float* q = nullptr;  // (rows, n_heads * head_dim), rotated
  float* out = nullptr;      // the same shape
  int rows = 0;
  const int* positions = nullptr;  // rows of them: row r sees none behind positions[r]
  int window = 0;                  // and only the last so many up to there; 0: all of them
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  float scale = 0;

  // What a row sees are the positions of its own path. Position p stands at slot p below
  // first_open; from there on each row of the open block has a slot, row i that of first_open + i,
  // and continues row parents[i], or what stands before first_open for -1. Row 0 here is row
  // first_row there. No parents: every position stands at the slot of its own number.
  int first_open = 0;
  const int* parents = nullptr;
  int first_row = 0;
  bool by_slot = false;  // a control, see Kernels::wide

  CacheElement element = CacheElement::F16;
  // pages[p] + layer_bytes + h * head_bytes: of key head h, slots kSpan * p and following. With a
  // window, pages that lie before it are not looked at and may stand for other positions by now.
  // First the keys in tiles of 16 slots, [kSpan / 16][head_dim][16]; value_bytes behind their start
  // the values, [kSpan][value_stride].
  std::byte* const* pages = nullptr;
  size_t layer_bytes = 0;
  size_t head_bytes = 0;
  size_t value_bytes = 0;
  int value_stride = 0;  // elements; head_dim rounded up to 16
};

// Drawing a token from a row of logits; the rule is in kernels/sampling.h.
inline constexpr int kDrawGroup = 64;       // ids whose largest logit is found together
inline constexpr float kMostNoise = 22.9f;  // above every value of the noise: -log(2^-33) = 22.874

struct NoiseKey {  // of a seed and a position
  uint32_t a = 0;
  uint32_t b = 0;
};

// x = (logit - top) * scale for every id: 0 for the largest logit, negative for all others.
struct RowScale {
  float top = 0;    // finite
  float scale = 1;  // 1 / temperature
};

struct DrawArgs {
  RowScale row = {};
  // Ids that may be drawn: x above `least`, and those equal to it up to id `last_tie`.
  float least = -__builtin_inff();
  int last_tie = 0x7fffffff;
  NoiseKey key = {};
};

struct Drawn {
  float score = -__builtin_inff();  // x + noise
  int id = -1;
};

struct KernelTable {
  const char* isa;      // the family: "scalar", "avx2", "avx512", "amx"
  const char* variant;  // what exactly: "avx512-vnni"
  Numerics numerics;

  // y for output tiles [first_tile, last_tile), by type of weight.
  void (*matmul[6])(const MatmulArgs&, int first_tile, int last_tile);
  // The same in an order that depends on the number of rows: a control, see Kernels::wide.
  void (*matmul_wide[6])(const MatmulArgs&, int first_tile, int last_tile);

  // Rows of x to int8 blocks in the layout of MatmulArgs: blocks [first, last) of [group][block],
  // each of all rows of its group. (By rows instead, threads would share lines of the scales.)
  void (*quantize_blocks)(const float* x, int rows, int n_in, int64_t first, int64_t last,
                          int8_t* q, float* scale, float* scaled_sum, int32_t* sum);

  // Amx numerics only, else null. Rows of x to two bf16 parts each, in the layout of MatmulArgs:
  // high = x rounded to bf16, low = x - high rounded to bf16; the last chunk is filled up with +0.
  void (*split_rows)(const float* x, int rows, int n_in, int first, int n, uint16_t* out);
  // One TDPBF16PS by itself, so that tests can ask what it does: c += a b over `pairs` pairs.
  //   a [rows][pairs][2] bf16     b [pairs][16][2] bf16     c [rows][16] f32     1 .. 16 of each
  void (*bf16_tile)(int rows, int pairs, const uint16_t* a, const uint16_t* b, float* c);

  // y[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight.
  void (*rms_norm)(const float* x, const float* weight, float eps, int rows, int dim, float* y);
  // Rotates halves (i, i + head_dim / 2) of each head of one row, in place.
  void (*rope)(float* x, int n_heads, int head_dim, const float* cos, const float* sin);
  // gate = silu(gate) * up, element by element; n is any number.
  void (*silu_mul)(float* gate, const float* up, int64_t n);
  // The same with gelu, in the form with tanh, in place of silu.
  void (*gelu_mul)(float* gate, const float* up, int64_t n);
  // x = cap * tanh(x / cap), element by element; n is any number.
  void (*soft_cap)(float* x, int64_t n, float cap);

  // Writes one row of one head into its page, at `slot` 0 .. kSpan - 1 of it, rounded to the
  // cache's element type.
  void (*append_key)(const float* k, int head_dim, CacheElement element, std::byte* page_keys,
                     int slot);
  void (*append_value)(const float* v, int head_dim, int value_stride, CacheElement element,
                       std::byte* page_values, int slot);
  // Items [first, last) of rows * n_heads, numbered (kv head, row, query head of the group).
  // scratch: attend_scratch_floats() of kernels/attention.h.
  void (*attend)(const AttendArgs&, int first, int last, float* scratch);

  // Index of the largest finite maximum, lowest on ties, else -1.
  int (*argmax)(const float* x, int n);
  float (*log_sum_exp)(const float* x, int n);

  // maxima[g]: the largest of ids kDrawGroup * g on; NaNs are passed over, so it is -infinity where
  // there is nothing else.
  void (*group_max)(const float* x, int n, float* maxima);
  // Sum of e^x over a row, in spans of 1,024 ids; a NaN counts as 0.
  float (*exp_sum)(const float* logits, int n, const RowScale& row);
  // y = e^x, element by element.
  void (*exp_all)(const float* x, int n, float* y);
  // Those of ids [first, end) with least <= x < below, ascending, as sorting keys: |x| in the upper
  // half, the id in the lower one. `first` is a multiple of 16. Returns how many. keys has room for
  // all of them.
  int (*gather)(const float* logits, int first, int end, const RowScale& row, float least,
                float below, uint64_t* keys);
  // Improves *best by ids [first, end). `first` is a multiple of 16.
  void (*draw)(const float* logits, int first, int end, const DrawArgs& args, Drawn* best);
};

}  // namespace paceline

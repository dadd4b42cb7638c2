#include "models/dense_layer.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/rope.h"
#include "kernels/rows.h"

namespace paceline {
namespace {

// Where the cosines or sines of a row stand.
float* angles(float* all, const DenseTrunk& trunk, const DenseRows& s, int rotation, int row) {
  return all + (static_cast<int64_t>(rotation) * s.limit + row) * (trunk.config.head_dim / 2);
}

// Norms every head of every row by itself, where the family does.
void norm_heads(const DenseConfig& c, Mat<float> heads, const std::vector<float>& norm,
                const Kernels& kernels) {
  if (norm.empty()) return;
  const Mat<float> each(heads.data, heads.rows * (heads.cols / c.head_dim), c.head_dim);
  rms_norm(each, norm.data(), c.norm_eps, each, kernels);
}

// h += x · Wᵀ, the sum normed before it is added where the family does. run(product) runs it.
template <class Run>
void add_product(const DenseConfig& c, const PackedMatrix& w, const std::vector<float>& bias,
                 const std::vector<float>& post_norm, Mat<float> h, DenseRows& s, const Run& run) {
  if (post_norm.empty()) {
    run(product(w, h, bias, Store::Add));
    return;
  }
  const Mat<float> y(s.x, h.rows, c.dim);  // free by now
  run(product(w, y, bias));
  rms_norm(y, post_norm.data(), c.norm_eps, y, s.kernels);
  add(h, y, s.kernels);
}

// Rotates queries, from row first_out on, and keys by their positions, and appends keys and values
// to their sequences' caches. Handed out by key heads, each with the queries that look at it: rows
// of one head share lines of the cache, and of many rows attention reads what the same thread
// wrote.
void rotate_and_append(const DenseTrunk& trunk, LayerPlace place, std::span<const LayerPart> parts,
                       Mat<float> q, Mat<float> k, Mat<const float> v, int first_out,
                       DenseRows& s) {
  const DenseConfig& c = trunk.config;
  const KernelTable& table = *s.kernels.table;
  const int group = c.n_heads / c.n_kv_heads;
  const int64_t chunks = (q.rows + kKeyTile - 1) / kKeyTile;  // of rows, where a prompt has many
  const auto rotate = [&](int head, int first, int end) {
    int before = 0;  // rows of the parts passed so far
    for (const LayerPart& part : parts) {
      const int last = std::min(end, before + part.rows());
      for (int row = std::max(first, before); row < last; ++row) {
        const float* cos = angles(s.cos, trunk, s, place.rotation, row);
        const float* sin = angles(s.sin, trunk, s, place.rotation, row);
        if (row >= first_out)
          table.rope(q.row(row).data() + head * group * c.head_dim, group, c.head_dim, cos, sin);
        table.rope(k.row(row).data() + head * c.head_dim, 1, c.head_dim, cos, sin);
        part.cache->append(place.cache_layer, part.first_row + row - before, head,
                           k.row(row).data(), v.row(row).data(), table);
      }
      before += part.rows();
    }
  };
  const int64_t elements = static_cast<int64_t>(q.rows) * q.cols;
  hand_out(c.n_kv_heads * chunks, 1, elements, s.kernels, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto first = static_cast<int>(i % chunks) * kKeyTile;
      rotate(static_cast<int>(i / chunks), first, std::min(first + kKeyTile, q.rows));
    }
  });
}

}  // namespace

Product product(const PackedMatrix& w, Mat<float> y, const std::vector<float>& bias, Store store) {
  return {w, y, bias.empty() ? nullptr : bias.data(), store};
}

void DenseTrunk::embed(TokenId token, std::span<float> h) const {
  check(token >= 0 && token < config.vocab_size, "token ids lie inside the vocabulary");
  unpack_row(weights.embedding, token, h);
  if (embedding_scale == 1.0f) return;
  for (float& x : h) x = x * embedding_scale;
}

Result<HugeBuffer> take_buffers(std::span<const FloatBuffer> buffers) {
  constexpr size_t kAlign = 32;  // floats: two cache lines, so that no two parts share one
  const auto taken = [](const FloatBuffer& b) { return (b.floats + kAlign) / kAlign * kAlign; };
  size_t total = 0;
  for (const FloatBuffer& buffer : buffers) total += taken(buffer);
  auto memory = HugeBuffer::allocate(total * sizeof(float));
  if (!memory) return memory.error();
  auto* at = reinterpret_cast<float*>(memory->data());
  for (const FloatBuffer& buffer : buffers) {
    *buffer.where = at;
    at += taken(buffer);
  }
  return memory;
}

Result<void> DenseRows::take(const DenseTrunk& trunk, int max_rows, int widest,
                             std::span<const FloatBuffer> more) {
  const DenseConfig& c = trunk.config;
  limit = max_rows;
  attend_scratch_per_thread = attend_scratch_floats(c.context_length + kMostTreeRows, c.head_dim);
  const size_t q_dim = static_cast<size_t>(c.n_heads) * c.head_dim;
  const size_t kv_dim = static_cast<size_t>(c.n_kv_heads) * c.head_dim;
  const auto n = static_cast<size_t>(max_rows);
  std::vector<FloatBuffer> buffers = {
      {&h, n * c.dim},
      {&x, n * c.dim},
      {&q, n * q_dim},
      {&k, n * kv_dim},
      {&v, n * kv_dim},
      {&attended, n * q_dim},
      {&gate, n * c.hidden_dim},
      {&up, n * c.hidden_dim},
      {&attend_scratch, attend_scratch_per_thread * trunk.pool->size()},
      {&cos, trunk.frequencies.size() * n * c.head_dim / 2},
      {&sin, trunk.frequencies.size() * n * c.head_dim / 2},
  };
  buffers.insert(buffers.end(), more.begin(), more.end());
  auto taken = take_buffers(buffers);
  if (!taken) return taken.error();
  memory = std::move(*taken);
  auto inputs = Activations::make(max_rows, std::max({c.dim, c.n_heads * c.head_dim, widest}));
  if (!inputs) return inputs.error();
  prepared = std::move(*inputs);
  auto hidden = Activations::make(max_rows, c.hidden_dim);
  if (!hidden) return hidden.error();
  gated = std::move(*hidden);
  attend_parts.reserve(max_rows);
  return {};
}

void set_angles(const DenseTrunk& trunk, int row, int position, DenseRows& s) {
  for (int kind = 0; kind < static_cast<int>(trunk.frequencies.size()); ++kind)
    rope_angles(trunk.frequencies[kind], position, angles(s.cos, trunk, s, kind, row),
                angles(s.sin, trunk, s, kind, row));
}

void attention(const DenseTrunk& trunk, const DenseLayer& w, LayerPlace place,
               std::span<const LayerPart> parts, int rows, int n_out, DenseRows& s) {
  const DenseConfig& c = trunk.config;
  const int first_out = rows - n_out;
  check(first_out == 0 || parts.size() == 1, "only a single sequence has rows without output");
  const int q_dim = c.n_heads * c.head_dim;
  const int kv_dim = c.n_kv_heads * c.head_dim;
  const Mat<float> h(s.h, rows, c.dim), x(s.x, rows, c.dim);
  const Mat<float> q(s.q, rows, q_dim), k(s.k, rows, kv_dim), v(s.v, rows, kv_dim);
  const Mat<float> attended(s.attended, rows, q_dim);
  const Mat<float> q_out = q.middle(first_out, n_out);

  rms_norm(h, w.attn_norm.data(), c.norm_eps, x, s.kernels);
  if (first_out == 0) {
    project(x, {product(w.q, q, w.q_bias), product(w.k, k, w.k_bias), product(w.v, v, w.v_bias)},
            s.prepared, s.kernels);
  } else {
    project(x, {product(w.k, k, w.k_bias), product(w.v, v, w.v_bias)}, s.prepared, s.kernels);
    if (n_out > 0)
      project(x.middle(first_out, n_out), {product(w.q, q_out, w.q_bias)}, s.prepared, s.kernels);
  }
  norm_heads(c, q_out, w.q_norm, s.kernels);
  norm_heads(c, k, w.k_norm, s.kernels);
  s.attend_parts.clear();
  int row = 0;
  for (const LayerPart& part : parts) {
    const int part_rows = part.rows();
    const int silent = first_out;  // rows of the part that nothing comes out of
    const int first_row = part.first_row + silent;
    AttendArgs& args = s.attend_parts.emplace_back(
        AttendArgs{.q = q.data + int64_t{row + silent} * q_dim,
                   .out = attended.data + int64_t{row + silent} * q_dim,
                   .rows = part_rows - silent,
                   .positions = part.block->positions().data() + first_row,
                   .n_heads = c.n_heads,
                   .n_kv_heads = c.n_kv_heads,
                   .head_dim = c.head_dim,
                   .scale = trunk.score_scale,
                   .parents = part.block->parents().data(),
                   .first_row = first_row,
                   .by_slot = s.kernels.wide});
    part.cache->fill(place.cache_layer, args);
    row += part_rows;
  }
  rotate_and_append(trunk, place, parts, q, k, v, first_out, s);
  if (n_out == 0) return;
  attend(s.attend_parts, s.attend_scratch, s.attend_scratch_per_thread, s.kernels);
  add_product(c, w.out, w.out_bias, w.attn_post_norm, h.middle(first_out, n_out), s,
              [&](const Product& out) {
                project(attended.middle(first_out, n_out), {out}, s.prepared, s.kernels);
              });
}

void feed_forward(const DenseTrunk& trunk, const DenseLayer& w, int first, int rows, DenseRows& s) {
  const DenseConfig& c = trunk.config;
  const Mat<float> h = Mat<float>(s.h, first + rows, c.dim).middle(first, rows);
  const Mat<float> x(s.x, rows, c.dim);
  const Mat<float> gate(s.gate, rows, c.hidden_dim), up(s.up, rows, c.hidden_dim);

  rms_norm(h, w.ffn_norm.data(), c.norm_eps, x, s.kernels);
  // Who computed a part of the gate applies it, and makes it ready for the last product.
  const Gate kind = c.activation == Activation::Gelu ? Gate::Gelu : Gate::Silu;
  const bool in_pieces = s.gated.begin(gate, w.down.type, s.kernels);
  const auto apply = [&](int begin, int end) {
    apply_gate(kind, gate, up, begin, end, *s.kernels.table);
    if (in_pieces) s.gated.set_columns(gate, begin, end, *s.kernels.table);
  };
  project(x, {product(w.gate, gate, w.gate_bias), product(w.up, up, w.up_bias)}, s.prepared,
          s.kernels, Then(apply));
  if (!in_pieces) s.gated.set(gate, w.down.type, s.kernels);
  add_product(c, w.down, w.down_bias, w.ffn_post_norm, h, s, [&](const Product& down) {
    matmul(s.gated, {&down, 1}, s.kernels);
  });
}

}  // namespace paceline

#include "train/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/rope.h"

namespace paceline::train {
namespace {

constexpr int kBlockRows = 96;  // queries of one head whose scores stand in memory at a time
constexpr int kMostChain = 8;

template <class T>
T* room(std::vector<T>& memory, size_t n) {
  if (memory.size() < n) memory.resize(n);
  return memory.data();
}

// One sequence and key head on one thread.
class Item {
 public:
  Item(const Segment& segment, std::span<const AttentionRows> depths, int base, int depth,
       int kv_head, const AttentionShape& shape, AttentionScratch::Thread& memory,
       const TrainTable& table)
      : segment_(segment),
        depths_(depths),
        base_(depths[base - 1]),
        own_(depths[depth - 1]),
        first_chain_(base),
        n_chain_(depth - base),
        shape_(shape),
        kv_head_(kv_head),
        memory_(memory),
        t_(table),
        scale_(1.0f / std::sqrt(static_cast<float>(shape.head_dim))),
        // Scores of a row, and panels of keys behind them.
        pitch_((segment.rows + table.panel - 1) / table.panel * table.panel) {
    check(n_chain_ >= 0 && n_chain_ <= kMostChain, "a chain of at most eight depths");
    room(memory_.scores, static_cast<size_t>(kBlockRows) * pitch_);
    room(memory_.left, static_cast<size_t>(kBlockRows + 1) * (pitch_ + 16));
  }

  void forward() {
    pack_rows(base_.k, memory_.k_rows);
    pack_columns(base_.v, memory_.v_columns);
    for (int head = first_head(); head < first_head() + group(); ++head)
      for (int row = 0; row < segment_.rows; row += kBlockRows) forward_block(head, row);
  }

  void backward() {
    pack_rows(base_.k, memory_.k_rows);
    pack_columns(base_.k, memory_.k_columns);
    pack_rows(base_.v, memory_.v_rows);
    room(memory_.d_scores, static_cast<size_t>(kBlockRows) * pitch_);
    for (int head = first_head(); head < first_head() + group(); ++head)
      for (int row = 0; row < segment_.rows; row += kBlockRows) backward_block(head, row);
  }

 private:
  int group() const { return shape_.n_heads / shape_.n_kv_heads; }
  int first_head() const { return kv_head_ * group(); }
  int dim() const { return shape_.head_dim; }
  int units(int n) const { return (n + t_.per_unit - 1) / t_.per_unit; }
  // The slice of a head in a row of this sequence.
  float* query(const Mat<float>& m, int row, int head) const {
    return m.row(segment_.first + row).data() + head * dim();
  }
  float* key(const Mat<float>& m, int row) const { return query(m, row, kv_head_); }

  // Keys or values of this head as right operands: positions as columns, or as the sum.
  void pack_rows(const Mat<float>& m, std::vector<uint32_t>& to) const {
    const int panels = (segment_.rows + t_.panel - 1) / t_.panel;
    t_.right_rows(key(m, 0), m.cols, segment_.rows, dim(), 0, panels,
                  room(to, static_cast<size_t>(panels) * t_.panel * units(dim())));
  }
  void pack_columns(const Mat<float>& m, std::vector<uint32_t>& to) const {
    pack_slice(key(m, 0), m.cols, segment_.rows, to);
  }
  void pack_slice(const float* x, int64_t x_row, int n_sum, std::vector<uint32_t>& to) const {
    const int panels = (dim() + t_.panel - 1) / t_.panel;
    t_.right_columns(x, x_row, dim(), n_sum, 0, panels,
                     room(to, static_cast<size_t>(panels) * t_.panel * units(n_sum)));
  }

  // c (rows, cols) = or += left . b
  void product(const uint32_t* left, int64_t left_row, int64_t left_step,
               const std::vector<uint32_t>& b, int b_steps, int steps, float* c, int64_t c_row,
               int rows, int cols, bool add) const {
    t_.product({.a = left,
                .a_row = left_row,
                .a_step = left_step,
                .b = b.data(),
                .b_panel = static_cast<int64_t>(b_steps) * t_.panel,
                .steps = steps,
                .c = c,
                .c_row = c_row,
                .rows = rows,
                .cols = cols,
                .add = add});
  }
  // A block's rows of x, (rows, n) with `x_row` between them, times b.
  void rows_product(const float* x, int64_t x_row, int rows, int n, float scale,
                    const std::vector<uint32_t>& b, int b_steps, float* c, int64_t c_row,
                    int cols) const {
    const int64_t pitch = units(n) + 1;
    uint32_t* left = room(memory_.left, static_cast<size_t>(rows * pitch));
    t_.left_rows(x, x_row, rows, n, scale, left, pitch);
    product(left, pitch, 1, b, b_steps, units(n), c, c_row, rows, cols, false);
  }
  // d (cols, dim) += x^T . slice, x (rows, cols) a block's scores, slice (rows, dim).
  void columns_product(const float* x, int rows, int cols, const float* slice, int64_t slice_row,
                       float* d, int64_t d_row) const {
    uint32_t* left = room(memory_.left, static_cast<size_t>(units(rows)) * cols);
    t_.left_columns(x, pitch_, rows, cols, left, cols);
    pack_slice(slice, slice_row, rows, memory_.block);
    product(left, 1, cols, memory_.block, units(rows), units(rows), d, d_row, cols, dim(), true);
  }

  // Scores of a block against the base's keys: rows [first, first + rows), columns [0, cols).
  void block_scores(int head, int first, int rows, int cols) const {
    rows_product(query(own_.q, first, head), own_.q.cols, rows, dim(), scale_, memory_.k_rows,
                 units(dim()), memory_.scores.data(), pitch_, cols);
  }

  const AttentionRows& chain(int i) const { return depths_[first_chain_ + i]; }
  void chain_scores(int head, int row, float* scores) const {
    for (int i = 0; i < n_chain_; ++i)
      scores[i] = scale_ * t_.dot(query(own_.q, row, head), key(chain(i).k, row), dim());
  }

  void forward_block(int head, int first) const {
    const int rows = std::min(kBlockRows, segment_.rows - first);
    const int cols = first + rows;
    block_scores(head, first, rows, cols);
    float chain_p[kBlockRows][kMostChain];
    for (int r = 0; r < rows; ++r) {
      float* p = memory_.scores.data() + r * pitch_;
      const int seen = first + r + 1;
      chain_scores(head, first + r, chain_p[r]);
      float most = -std::numeric_limits<float>::infinity();
      for (int i = 0; i < n_chain_; ++i) most = std::max(most, chain_p[r][i]);
      float sum = t_.exp_row(p, seen, &most);
      t_.exp_minus(chain_p[r], n_chain_, most);
      for (int i = 0; i < n_chain_; ++i) sum += chain_p[r][i];
      t_.scale(p, seen, 1.0f / sum);
      for (int i = 0; i < n_chain_; ++i) chain_p[r][i] /= sum;
      std::fill(p + seen, p + cols, 0.0f);
      own_.log_sums.row(segment_.first + first + r)[head] =
          most + static_cast<float>(log_double(sum));
    }
    rows_product(memory_.scores.data(), pitch_, rows, cols, 1.0f, memory_.v_columns,
                 units(segment_.rows), query(own_.out, first, head), own_.out.cols, dim());
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < n_chain_; ++i)
        t_.add_scaled(key(chain(i).v, first + r), chain_p[r][i], dim(),
                      query(own_.out, first + r, head));
  }

  void backward_block(int head, int first) const {
    const int rows = std::min(kBlockRows, segment_.rows - first);
    const int cols = first + rows;
    const float* d_out = query(own_.d_out, first, head);
    block_scores(head, first, rows, cols);
    rows_product(d_out, own_.d_out.cols, rows, dim(), 1.0f, memory_.v_rows, units(dim()),
                 memory_.d_scores.data(), pitch_, cols);
    float means[kBlockRows];
    for (int r = 0; r < rows; ++r) {
      float* p = memory_.scores.data() + r * pitch_;
      float* d = memory_.d_scores.data() + r * pitch_;
      const int seen = first + r + 1;
      means[r] =
          t_.dot(query(own_.d_out, first + r, head), query(own_.out, first + r, head), dim());
      t_.exp_minus(p, seen, own_.log_sums.row(segment_.first + first + r)[head]);
      t_.softmax_back(p, d, seen, means[r], scale_, d);
      std::fill(p + seen, p + cols, 0.0f);
      std::fill(d + seen, d + cols, 0.0f);
    }
    columns_product(memory_.scores.data(), rows, cols, d_out, own_.d_out.cols, key(base_.d_v, 0),
                    base_.d_v.cols);
    columns_product(memory_.d_scores.data(), rows, cols, query(own_.q, first, head), own_.q.cols,
                    key(base_.d_k, 0), base_.d_k.cols);
    rows_product(memory_.d_scores.data(), pitch_, rows, cols, 1.0f, memory_.k_columns,
                 units(segment_.rows), query(own_.d_q, first, head), own_.d_q.cols, dim());
    for (int r = 0; r < rows; ++r) backward_chain(head, first + r, means[r]);
  }

  void backward_chain(int head, int row, float mean) const {
    float p[kMostChain];
    chain_scores(head, row, p);
    t_.exp_minus(p, n_chain_, own_.log_sums.row(segment_.first + row)[head]);
    const float* d_out = query(own_.d_out, row, head);
    for (int i = 0; i < n_chain_; ++i) {
      const AttentionRows& link = chain(i);
      const float d_p = t_.dot(d_out, key(link.v, row), dim());
      const float d_score = p[i] * (d_p - mean) * scale_;
      t_.add_scaled(d_out, p[i], dim(), key(link.d_v, row));
      t_.add_scaled(query(own_.q, row, head), d_score, dim(), key(link.d_k, row));
      t_.add_scaled(key(link.k, row), d_score, dim(), query(own_.d_q, row, head));
    }
  }

  const Segment& segment_;
  std::span<const AttentionRows> depths_;
  const AttentionRows& base_;
  const AttentionRows& own_;
  int first_chain_;
  int n_chain_;
  AttentionShape shape_;
  int kv_head_;
  AttentionScratch::Thread& memory_;
  const TrainTable& t_;
  float scale_;
  int pitch_;
};

template <class Body>
void each_item(std::span<const Segment> segments, const AttentionShape& shape,
               AttentionScratch& scratch, const Tools& tools, Body body) {
  scratch.use(tools.pool->size());
  const int n = static_cast<int>(std::ssize(segments)) * shape.n_kv_heads;
  tools.pool->run(n, [&](int thread, int piece) {
    body(segments[piece / shape.n_kv_heads], piece % shape.n_kv_heads, scratch.of(thread));
  });
}

}  // namespace

void attend(std::span<const Segment> segments, std::span<const AttentionRows> depths, int base,
            int depth, const AttentionShape& shape, AttentionScratch& scratch, const Tools& tools) {
  each_item(segments, shape, scratch, tools,
            [&](const Segment& segment, int kv_head, AttentionScratch::Thread& memory) {
              Item(segment, depths, base, depth, kv_head, shape, memory, *tools.table).forward();
            });
}

void attend_back(std::span<const Segment> segments, std::span<const AttentionRows> depths, int base,
                 int depth, const AttentionShape& shape, AttentionScratch& scratch,
                 const Tools& tools) {
  each_item(segments, shape, scratch, tools,
            [&](const Segment& segment, int kv_head, AttentionScratch::Thread& memory) {
              Item(segment, depths, base, depth, kv_head, shape, memory, *tools.table).backward();
            });
}

}  // namespace paceline::train

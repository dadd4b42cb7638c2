#include "train/net.h"

#include <algorithm>

#include "base/check.h"
#include "models/draft_head.h"

namespace paceline::train {
namespace {

// Rows in memory that is taken once and only grows.
class Rows {
 public:
  void set(int rows, int cols) {
    rows_ = rows;
    cols_ = cols;
    const auto n = static_cast<size_t>(rows) * cols;
    if (values_.size() < n) values_.resize(n);
  }
  void zero() { std::fill_n(values_.begin(), static_cast<size_t>(rows_) * cols_, 0.0f); }
  operator Mat<float>() { return {values_.data(), rows_, cols_}; }              // NOLINT: implicit
  operator Mat<const float>() const { return {values_.data(), rows_, cols_}; }  // NOLINT: implicit
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  Mat<float> mat() { return *this; }

 private:
  std::vector<float> values_;
  int rows_ = 0;
  int cols_ = 0;
};

// A matrix packed for both directions.
struct Weight {
  Right forward, back;
  void set(const float* values, int n_out, int n_in, const Tools& tools) {
    forward.set_rows({values, n_out, n_in}, tools);
    back.set_columns({values, n_out, n_in}, tools);
  }
};

// The halves of what fc reads.
constexpr int kEmbeddingHalf = kMergeOrder[0] == MergeHalf::Embedding ? 0 : 1;
constexpr int kHiddenHalf = 1 - kEmbeddingHalf;

}  // namespace

struct HeadNet::Module {
  ModuleValues<const float> values;
  Weight fc, q, k, v, out, gate, up, down;
};

// What forward keeps of a depth.
struct HeadNet::Depth {
  Rows hidden_in, merged, x0, n1, q, k, v, q_raw, k_raw, attended, log_sums, x1, n2, gate, up, act;
  Rows x2, y;
  std::vector<float> embedding_inverse, hidden_inverse, inverse1, inverse2, inverse3, q_inverse,
      k_inverse;
  std::vector<int> positions;
  Rows d_y, d_k, d_v;
};

// Gradients of the depth under way.
struct HeadNet::Back {
  Rows d_state;  // of what the depth under way handed on
  Rows d_x, d_n, d_act, d_gate, d_up, d_out, d_q, d_raw, d_merged, d_hidden;
  std::vector<float> d_bias;
};

HeadNet::HeadNet(const NetShape& shape, const Layout& layout, const Tools& tools)
    : shape_(shape),
      layout_(layout),
      tools_(tools),
      angles_(make_angles(shape.frequencies, shape.max_rows + shape.depths)),
      back_(std::make_unique<Back>()),
      active_(shape.depths) {
  check(shape.modules >= 1 && shape.modules <= shape.depths, "a depth for each module");
  for (int i = 0; i < shape.modules; ++i) modules_.push_back(std::make_unique<Module>());
  for (int i = 0; i < shape.depths; ++i) depths_.push_back(std::make_unique<Depth>());
}

HeadNet::~HeadNet() = default;

void HeadNet::use_depths(int depths) {
  check(depths >= 1 && depths <= shape_.depths, "no more depths than the net was made with");
  active_ = depths;
}

void HeadNet::set_weights(std::span<const float> values) {
  values_ = values;
  const int dim = shape_.dim;
  const int hidden_dim = shape_.hidden_dim;
  const int q_dim = shape_.attention.n_heads * shape_.attention.head_dim;
  const int kv_dim = shape_.attention.n_kv_heads * shape_.attention.head_dim;
  for (int i = 0; i < shape_.modules; ++i) {
    Module& m = *modules_[i];
    m.values = module_values<const float>(layout_, i, values.data());
    m.fc.set(m.values.fc, dim, 2 * dim, tools_);
    m.q.set(m.values.q, q_dim, dim, tools_);
    m.k.set(m.values.k, kv_dim, dim, tools_);
    m.v.set(m.values.v, kv_dim, dim, tools_);
    m.out.set(m.values.out, dim, q_dim, tools_);
    m.gate.set(m.values.gate, hidden_dim, dim, tools_);
    m.up.set(m.values.up, hidden_dim, dim, tools_);
    m.down.set(m.values.down, dim, hidden_dim, tools_);
  }
}

int HeadNet::base_of(int depth) const {
  return shape_.mask == Mask::Recipe ? depth : std::min(depth, shape_.modules);
}

void HeadNet::reserve(int rows) {
  rows_ = rows;
  const int dim = shape_.dim;
  const int hidden_dim = shape_.hidden_dim;
  const int n_heads = shape_.attention.n_heads;
  const int q_dim = n_heads * shape_.attention.head_dim;
  const int kv_dim = shape_.attention.n_kv_heads * shape_.attention.head_dim;
  attention_rows_.resize(depths_.size());
  for (size_t i = 0; i < depths_.size(); ++i) {
    Depth& d = *depths_[i];
    for (Rows* r : {&d.hidden_in, &d.x0, &d.n1, &d.x1, &d.n2, &d.x2, &d.y, &d.d_y})
      r->set(rows, dim);
    d.merged.set(rows, 2 * dim);
    for (Rows* r : {&d.q, &d.attended}) r->set(rows, q_dim);
    for (Rows* r : {&d.k, &d.v, &d.d_k, &d.d_v}) r->set(rows, kv_dim);
    if (modules_[0]->values.q_norm != nullptr) {
      d.q_raw.set(rows, q_dim);
      d.k_raw.set(rows, kv_dim);
      d.q_inverse.resize(static_cast<size_t>(rows) * n_heads);
      d.k_inverse.resize(static_cast<size_t>(rows) * shape_.attention.n_kv_heads);
    }
    d.log_sums.set(rows, n_heads);
    for (Rows* r : {&d.gate, &d.up, &d.act}) r->set(rows, hidden_dim);
    for (auto* inverse :
         {&d.embedding_inverse, &d.hidden_inverse, &d.inverse1, &d.inverse2, &d.inverse3})
      inverse->resize(rows);
    d.positions.resize(rows);
  }
  Back& b = *back_;
  for (Rows* r : {&b.d_state, &b.d_x, &b.d_n, &b.d_hidden}) r->set(rows, dim);
  for (Rows* r : {&b.d_act, &b.d_gate, &b.d_up}) r->set(rows, hidden_dim);
  for (Rows* r : {&b.d_out, &b.d_q, &b.d_raw}) r->set(rows, q_dim);
  b.d_merged.set(rows, 2 * dim);
  for (size_t i = 0; i < depths_.size(); ++i) {
    Depth& d = *depths_[i];
    attention_rows_[i] = {.q = d.q,
                          .k = d.k,
                          .v = d.v,
                          .out = d.attended,
                          .log_sums = d.log_sums,
                          .d_q = b.d_q,
                          .d_k = d.d_k,
                          .d_v = d.d_v,
                          .d_out = b.d_out};
  }
}

Mat<const float> HeadNet::y(int depth) const { return depths_[depth - 1]->y; }
Mat<float> HeadNet::d_y(int depth) { return depths_[depth - 1]->d_y; }
Mat<const float> HeadNet::state(int depth) const {
  return shape_.recycles_normed ? depths_[depth - 1]->y : depths_[depth - 1]->x2;
}

Mat<const float> HeadNet::hidden_in(const NetBatch& batch, int depth) const {
  if (depth == 1) return batch.hidden;
  return shape_.rounds_hidden ? depths_[depth - 1]->hidden_in : state(depth - 1);
}

void HeadNet::forward(const NetBatch& batch) {
  check(batch.embedding.rows == batch.rows() + shape_.depths - 1, "embeddings for every depth");
  reserve(batch.rows());
  for (int depth = 1; depth <= active_; ++depth) forward_depth(batch, depth);
}

void HeadNet::forward_depth(const NetBatch& batch, int depth) {
  Depth& d = *depths_[depth - 1];
  const Module& m = *modules_[module_of(depth)];
  const ModuleValues<const float>& w = m.values;
  const AttentionShape& a = shape_.attention;
  const int dim = shape_.dim;
  const float eps = shape_.norm_eps;
  const auto whole = [](Mat<float> x) { return Columns{x, 0, x.cols}; };

  if (depth > 1 && shape_.rounds_hidden) {
    const Mat<const float> from = state(depth - 1);
    const Mat<float> to = d.hidden_in;
    tools_.pool->split(rows_, 8, [&](int64_t begin, int64_t end) {
      tools_.table->round_bf16(from.data + begin * dim, (end - begin) * dim, to.data + begin * dim);
    });
  }
  rms_norm(batch.embedding.middle(depth - 1, rows_), w.embedding_norm, eps,
           {d.merged, kEmbeddingHalf * dim, dim}, d.embedding_inverse.data(), tools_);
  rms_norm(hidden_in(batch, depth), w.hidden_norm, eps, {d.merged, kHiddenHalf * dim, dim},
           d.hidden_inverse.data(), tools_);
  left_.set_rows(d.merged, tools_);
  multiply(left_, m.fc.forward, d.x0, false, tools_);

  rms_norm(d.x0, w.attn_norm, eps, whole(d.n1), d.inverse1.data(), tools_);
  left_.set_rows(d.n1, tools_);
  const bool normed = w.q_norm != nullptr;
  const Mat<float> q = normed ? d.q_raw.mat() : d.q.mat();
  const Mat<float> k = normed ? d.k_raw.mat() : d.k.mat();
  multiply(left_, m.q.forward, q, false, tools_);
  multiply(left_, m.k.forward, k, false, tools_);
  multiply(left_, m.v.forward, d.v, false, tools_);
  add_bias(w.q_bias, q, tools_);
  add_bias(w.k_bias, k, tools_);
  add_bias(w.v_bias, d.v, tools_);
  if (normed) {
    const Mat<float> q_heads(q.data, rows_ * a.n_heads, a.head_dim);
    const Mat<float> k_heads(k.data, rows_ * a.n_kv_heads, a.head_dim);
    rms_norm(q_heads, w.q_norm, eps, whole({d.q.data(), q_heads.rows, a.head_dim}),
             d.q_inverse.data(), tools_);
    rms_norm(k_heads, w.k_norm, eps, whole({d.k.data(), k_heads.rows, a.head_dim}),
             d.k_inverse.data(), tools_);
  }
  const int base = base_of(depth);
  for (const Segment& segment : batch.segments)
    for (int row = 0; row < segment.rows; ++row)
      d.positions[segment.first + row] = row + depth - base;
  rope(d.q, a.head_dim, d.positions, angles_, false, tools_);
  rope(d.k, a.head_dim, d.positions, angles_, false, tools_);
  attend(batch.segments, attention_rows_, base, depth, a, scratch_, tools_);
  std::copy_n(d.x0.data(), static_cast<size_t>(rows_) * dim, d.x1.data());
  left_.set_rows(d.attended, tools_);
  multiply(left_, m.out.forward, d.x1, true, tools_);
  add_bias(w.out_bias, d.x1, tools_);

  rms_norm(d.x1, w.ffn_norm, eps, whole(d.n2), d.inverse2.data(), tools_);
  left_.set_rows(d.n2, tools_);
  multiply(left_, m.gate.forward, d.gate, false, tools_);
  multiply(left_, m.up.forward, d.up, false, tools_);
  add_bias(w.gate_bias, d.gate, tools_);
  add_bias(w.up_bias, d.up, tools_);
  swiglu(d.gate, d.up, d.act, tools_);
  std::copy_n(d.x1.data(), static_cast<size_t>(rows_) * dim, d.x2.data());
  left_.set_rows(d.act, tools_);
  multiply(left_, m.down.forward, d.x2, true, tools_);
  add_bias(w.down_bias, d.x2, tools_);
  rms_norm(d.x2, w.norm, eps, whole(d.y), d.inverse3.data(), tools_);
}

void HeadNet::loss(const NetBatch& batch, Targets targets, VocabularyLoss& vocabulary,
                   std::span<LossSums> sums, double dpace) {
  std::vector<LossDepth> depths;
  for (int depth = 1; depth <= active_; ++depth)
    depths.push_back({.depth = depth,
                      .y = y(depth),
                      .weights = batch.weights[depth - 1],
                      .hard = batch.hard[depth - 1],
                      .d_y = d_y(depth)});
  std::vector<std::vector<float>> weights;
  if (dpace >= 0) {
    std::vector<std::vector<float>> chances(active_);
    vocabulary.chances(depths, chances, tools_);
    weights.assign(batch.weights.begin(), batch.weights.begin() + active_);
    weigh_by_length(chances, dpace, weights);
    for (int i = 0; i < active_; ++i) depths[i].weights = weights[i];
  }
  vocabulary.run(batch.final_hidden, depths, targets, sums.first(active_), tools_);
}

void HeadNet::backward(const NetBatch& batch, std::span<float> gradient) {
  for (int i = 0; i < active_; ++i) {
    depths_[i]->d_k.zero();
    depths_[i]->d_v.zero();
  }
  back_->d_state.zero();
  for (int depth = active_; depth >= 1; --depth) backward_depth(batch, depth, gradient);
}

void HeadNet::backward_depth(const NetBatch& batch, int depth, std::span<float> gradient) {
  Depth& d = *depths_[depth - 1];
  Back& b = *back_;
  const Module& m = *modules_[module_of(depth)];
  const ModuleValues<const float>& w = m.values;
  const ModuleValues<float> g = module_values<float>(layout_, module_of(depth), gradient.data());
  const AttentionShape& a = shape_.attention;
  const int dim = shape_.dim;
  const auto whole = [](Mat<float> x) { return Columns{x, 0, x.cols}; };
  // d_w += d_y^T . x for all w that read the same x.
  struct ToWeight {
    Mat<const float> d_y;
    float* d_w;
  };
  const auto weight_gradients = [&](Mat<const float> x, std::initializer_list<ToWeight> parts) {
    right_.set_columns(x, tools_);
    for (const ToWeight& part : parts) {
      left_.set_columns(part.d_y, tools_);
      multiply(left_, right_, {part.d_w, part.d_y.cols, x.cols}, true, tools_);
    }
  };
  // d_x = or += d_y . w
  const auto back = [&](Mat<const float> d_y, const Weight& weight, Mat<float> d_x, bool add) {
    left_.set_rows(d_y, tools_);
    multiply(left_, weight.back, d_x, add, tools_);
  };

  // y, and what was handed on: y itself or x2.
  if (shape_.recycles_normed) {
    add(b.d_state, d.d_y, tools_);
    rms_norm_back(d.x2, w.norm, d.inverse3.data(), whole(d.d_y), false, b.d_x, g.norm, tools_);
  } else {
    std::copy_n(b.d_state.data(), static_cast<size_t>(rows_) * dim, b.d_x.data());
    rms_norm_back(d.x2, w.norm, d.inverse3.data(), whole(d.d_y), true, b.d_x, g.norm, tools_);
  }

  // Feed-forward: b.d_x is the gradient of x2 and becomes that of x1.
  back(b.d_x, m.down, b.d_act, false);
  weight_gradients(d.act, {{b.d_x, g.down}});
  add_bias_back(b.d_x, g.down_bias, tools_);
  swiglu_back(d.gate, d.up, b.d_act, b.d_gate, b.d_up, tools_);
  add_bias_back(b.d_gate, g.gate_bias, tools_);
  add_bias_back(b.d_up, g.up_bias, tools_);
  weight_gradients(d.n2, {{b.d_gate, g.gate}, {b.d_up, g.up}});
  back(b.d_gate, m.gate, b.d_n, false);
  back(b.d_up, m.up, b.d_n, true);
  rms_norm_back(d.x1, w.ffn_norm, d.inverse2.data(), whole(b.d_n), true, b.d_x, g.ffn_norm, tools_);

  // Attention: b.d_x becomes the gradient of x0.
  back(b.d_x, m.out, b.d_out, false);
  weight_gradients(d.attended, {{b.d_x, g.out}});
  add_bias_back(b.d_x, g.out_bias, tools_);
  attend_back(batch.segments, attention_rows_, base_of(depth), depth, a, scratch_, tools_);
  rope(b.d_q, a.head_dim, d.positions, angles_, true, tools_);
  rope(d.d_k, a.head_dim, d.positions, angles_, true, tools_);
  if (w.q_norm != nullptr) {
    const auto norm_back = [&](Rows& raw, int heads, const float* weight, const float* inverse,
                               Mat<float> d_heads, float* d_weight) {
      const Mat<float> x(raw.data(), rows_ * heads, a.head_dim);
      const Mat<float> d_x(b.d_raw.data(), rows_ * heads, a.head_dim);
      rms_norm_back(x, weight, inverse, whole({d_heads.data, x.rows, a.head_dim}), false, d_x,
                    d_weight, tools_);
      std::copy_n(d_x.data, static_cast<size_t>(d_x.rows) * d_x.cols, d_heads.data);
    };
    norm_back(d.q_raw, a.n_heads, w.q_norm, d.q_inverse.data(), b.d_q, g.q_norm);
    norm_back(d.k_raw, a.n_kv_heads, w.k_norm, d.k_inverse.data(), d.d_k, g.k_norm);
  }
  add_bias_back(b.d_q, g.q_bias, tools_);
  add_bias_back(d.d_k, g.k_bias, tools_);
  add_bias_back(d.d_v, g.v_bias, tools_);
  weight_gradients(d.n1, {{b.d_q, g.q}, {d.d_k, g.k}, {d.d_v, g.v}});
  back(b.d_q, m.q, b.d_n, false);
  back(d.d_k, m.k, b.d_n, true);
  back(d.d_v, m.v, b.d_n, true);
  rms_norm_back(d.x0, w.attn_norm, d.inverse1.data(), whole(b.d_n), true, b.d_x, g.attn_norm,
                tools_);

  // Merge.
  back(b.d_x, m.fc, b.d_merged, false);
  weight_gradients(d.merged, {{b.d_x, g.fc}});
  rms_norm_back_weight(batch.embedding.middle(depth - 1, rows_), d.embedding_inverse.data(),
                       {b.d_merged, kEmbeddingHalf * dim, dim}, g.embedding_norm, tools_);
  rms_norm_back(hidden_in(batch, depth), w.hidden_norm, d.hidden_inverse.data(),
                {b.d_merged, kHiddenHalf * dim, dim}, false, b.d_state, g.hidden_norm, tools_);
}

}  // namespace paceline::train

#include "models/dense_head.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "base/check.h"
#include "io/quantize.h"
#include "kernels/rows.h"

namespace paceline {
namespace {

struct HeadModule {
  PackedMatrix fc;  // (dim, 2 dim)
  std::vector<float> embedding_norm, hidden_norm, norm;
  DenseLayer layer;
};

struct DenseHeadWorkspace final : HeadWorkspace {
  int max_rows() const override { return rows.limit; }

  DenseRows rows;
  int logit_rows_limit = 0;
  float* merged;  // (rows, 2 dim), what fc reads
  float* normed;  // (rows, dim), behind the head's norm
  float* logits;  // (logit rows, draft vocabulary)
};

class DenseHead final : public DraftHead {
 public:
  static Result<std::unique_ptr<DraftHead>> make(const DenseTrunk& trunk, const HeadTensors& head);

  const HeadInfo& info() const override { return info_; }
  Result<std::unique_ptr<DraftHead>> beside(const Model& trunk) const override;
  Result<std::unique_ptr<HeadState>> make_state(int capacity, CacheType cache) const override;
  Result<std::unique_ptr<HeadWorkspace>> make_workspace(int max_rows) const override;
  HeadOut forward(const HeadRows& rows, HeadState& state, HeadWorkspace& workspace) const override;

 private:
  explicit DenseHead(const DenseTrunk& trunk) : trunk_(trunk) {}

  void merge(const HeadRows& in, const HeadModule& module, DenseHeadWorkspace& s) const;

  const DenseTrunk& trunk_;
  HeadInfo info_;
  std::shared_ptr<const HugeBuffer> memory_;  // of the head's own matrices
  std::vector<HeadModule> modules_;
  PackedMatrix output_;  // rows of the draft vocabulary; the trunk's own matrix where that is all
};

// The output matrix may be the trunk's own, and both trunks hold that one.
Result<std::unique_ptr<DraftHead>> DenseHead::beside(const Model& trunk) const {
  const DenseTrunk* const dense = trunk.dense_trunk();
  check(dense != nullptr && dense->weights.memory == trunk_.weights.memory,
        "a head goes with trunks that share their weights");
  std::unique_ptr<DenseHead> other(new DenseHead(*dense));
  other->info_ = info_;
  other->memory_ = memory_;
  other->modules_ = modules_;
  other->output_ = output_;
  return std::unique_ptr<DraftHead>(std::move(other));
}

// --- one pass ------------------------------------------------------------------------------------

// merged = [ RMS(embedding) ; RMS(hidden) ], in the order of fc's columns.
void DenseHead::merge(const HeadRows& in, const HeadModule& module, DenseHeadWorkspace& s) const {
  const int dim = trunk_.config.dim;
  const float eps = trunk_.config.norm_eps;
  const auto n = static_cast<int>(in.tokens.size());
  const Mat<float> raw(s.rows.h, n, dim), normed(s.rows.x, n, dim);
  for (int half = 0; half < 2; ++half) {
    const bool is_hidden = kMergeOrder[half] == MergeHalf::Hidden;
    for (int row = 0; row < n; ++row) {
      if (!is_hidden) {
        trunk_.embed(in.tokens[row], raw.row(row));
      } else if (info_.config.tap_type == TapType::F32) {
        std::ranges::copy(in.hidden.row(row), raw.row(row).begin());
      } else {
        std::ranges::transform(in.hidden.row(row), raw.row(row).begin(),
                               [](float x) { return to_f32(to_bf16(x)); });
      }
    }
    const auto& weight = is_hidden ? module.hidden_norm : module.embedding_norm;
    rms_norm(raw, weight.data(), eps, normed, s.rows.kernels);
    for (int row = 0; row < n; ++row)
      std::ranges::copy(normed.row(row), s.merged + (int64_t{2} * row + half) * dim);
  }
}

HeadOut DenseHead::forward(const HeadRows& in, HeadState& state, HeadWorkspace& workspace) const {
  auto& s = static_cast<DenseHeadWorkspace&>(workspace);
  const DenseConfig& c = trunk_.config;
  const auto n = static_cast<int>(in.tokens.size());
  check(n >= 1 && n <= s.rows.limit && in.hidden.rows == n, "a head reads rows that have room");
  check(in.n_logits <= in.n_next && in.n_next <= n, "what comes out are rows that went in");
  check(in.n_logits <= s.logit_rows_limit, "the workspace has room for the logits");
  const HeadModule& module = modules_[in.module];
  s.rows.kernels = trunk_.kernels;

  auto& cache = static_cast<KvCache&>(state.cache(in.module));
  const Block& open = state.append(in.module, in.tokens, in.parents);
  cache.open(open);
  const LayerPart part = {&cache, &open, open.rows() - n};
  for (int row = 0; row < n; ++row) set_angles(trunk_, row, part.position(row), s.rows);

  const Mat<float> h(s.rows.h, n, c.dim);
  merge(in, module, s);
  project(Mat<const float>(s.merged, n, 2 * c.dim), {{module.fc, h}}, s.rows.prepared,
          s.rows.kernels);
  attention(trunk_, module.layer, {}, {&part, 1}, n, in.n_next, s.rows);
  if (in.n_next == 0) return {};
  feed_forward(trunk_, module.layer, n - in.n_next, in.n_next, s.rows);
  const Mat<float> x = h.middle(n - in.n_next, in.n_next);
  const Mat<float> y(s.normed, in.n_next, c.dim);
  rms_norm(x, module.norm.data(), c.norm_eps, y, s.rows.kernels);

  HeadOut out = {.next = info_.config.tap == Tap::After ? y : x, .logits = {}};
  out.logits = Mat<float>(s.logits, in.n_logits, output_.n_out);
  if (in.n_logits == 0) return out;
  project(y.middle(in.n_next - in.n_logits, in.n_logits), {{output_, out.logits}}, s.rows.prepared,
          s.rows.kernels);
  if (c.logit_cap > 0) soft_cap(out.logits, static_cast<float>(c.logit_cap), s.rows.kernels);
  return out;
}

// --- memory --------------------------------------------------------------------------------------

Result<std::unique_ptr<HeadState>> DenseHead::make_state(int capacity, CacheType cache) const {
  std::vector<std::unique_ptr<SequenceState>> states;
  for (size_t i = 0; i < modules_.size(); ++i) {
    auto state = KvCache::make({.n_layers = 1,
                                .n_kv_heads = trunk_.config.n_kv_heads,
                                .head_dim = trunk_.config.head_dim,
                                .type = cache},
                               capacity);
    if (!state) return state.error();
    states.push_back(std::move(*state));
  }
  return std::make_unique<HeadState>(std::move(states));
}

Result<std::unique_ptr<HeadWorkspace>> DenseHead::make_workspace(int max_rows) const {
  auto s = std::make_unique<DenseHeadWorkspace>();
  const auto dim = static_cast<size_t>(trunk_.config.dim);
  s->logit_rows_limit = std::min(max_rows, kMostTreeRows);
  const std::array<FloatBuffer, 3> more = {{
      {&s->merged, max_rows * 2 * dim},
      {&s->normed, max_rows * dim},
      {&s->logits, static_cast<size_t>(s->logit_rows_limit) * output_.n_out},
  }};
  if (auto taken = s->rows.take(trunk_, max_rows, 2 * trunk_.config.dim, more); !taken)
    return taken.error();
  return std::unique_ptr<HeadWorkspace>(std::move(s));
}

// --- loading -------------------------------------------------------------------------------------

// The layer has the biases that the trunk's layers turned out to have.
DenseConfig layer_config(const DenseTrunk& trunk) {
  DenseConfig c = trunk.config;
  const DenseLayer& last = trunk.weights.layers.back();
  c.qkv_bias = last.q_bias.empty() ? Bias::None : Bias::Required;
  c.out_bias = last.out_bias.empty() ? Bias::None : Bias::Required;
  c.ffn_bias = last.up_bias.empty() ? Bias::None : Bias::Required;
  return c;
}

std::string layer_prefix(int module) { return head_prefix(module) + "layers.0."; }

WeightType type_for(const DenseTrunk& trunk, int n_in) {
  const DenseLayer& last = trunk.weights.layers.back();
  const auto types = {last.q.type,    last.k.type,  last.v.type,   last.out.type,
                      last.gate.type, last.up.type, last.down.type};
  if (std::ranges::none_of(types, is_quantized)) return last.down.type;
  return n_in % kQuantBlock == 0 ? WeightType::Q8_0 : WeightType::BF16;
}

DType file_type(WeightType type) {
  constexpr std::array kTypes = {DType::F32,  DType::BF16, DType::F16,
                                 DType::Q8_0, DType::Q4_0, DType::Q4_1};
  return kTypes[static_cast<size_t>(type)];
}

float as_in_a_file(float x) { return to_f32(to_bf16(x)); }

// Matrices and vectors of a head on their way into packed memory.
class HeadPacker {
 public:
  HeadPacker(const DenseTrunk& trunk, const HeadTensors& head) : trunk_(trunk), head_(head) {}

  void matrix(const std::string& name, int n_out, int n_in, PackedMatrix* to) {
    *to = {.type = type_for(trunk_, n_in), .n_out = n_out, .n_in = n_in, .data = nullptr};
    add(to, [this, name, n_in, type = to->type](int row, std::span<std::byte> out) {
      const float* values = tensor(name).values.data() + static_cast<int64_t>(row) * n_in;
      std::vector<float> rounded(n_in);
      std::transform(values, values + n_in, rounded.begin(), as_in_a_file);
      quantize(file_type(type), rounded, out);
    });
  }
  void vector(const std::string& name, std::vector<float>* to) {
    const auto& values = tensor(name).values;
    to->resize(values.size());
    std::ranges::transform(values, to->begin(), as_in_a_file);
    parameters_ += std::ssize(values);
  }
  // Rows of a matrix that is packed already.
  void rows(const PackedMatrix& from, const std::vector<TokenId>& ids, PackedMatrix* to) {
    *to = {.type = from.type, .n_out = static_cast<int>(ids.size()), .n_in = from.n_in};
    add(to, [from, ids](int row, std::span<std::byte> out) { stored_row(from, ids[row], out); });
    parameters_ -= static_cast<int64_t>(to->n_out) * to->n_in;  // they are the trunk's
  }

  int64_t parameters() const { return parameters_; }

  Result<HugeBuffer> pack() {
    auto memory = HugeBuffer::allocate(bytes_);
    if (!memory) return memory.error();
    for (const Job& job : jobs_) {
      PackedMatrix& m = *job.to;
      std::byte* data = memory->data() + job.offset;
      const size_t size = row_bytes(m.type, m.n_in);
      trunk_.pool->split(m.tiles(), 1, [&](int64_t first, int64_t last) {
        std::vector<std::byte> bytes(size * kTileOutputs);
        for (auto tile = static_cast<int>(first); tile < last; ++tile) {
          std::array<const std::byte*, kTileOutputs> rows = {};
          for (int o = 0; o < std::min(kTileOutputs, m.n_out - tile * kTileOutputs); ++o) {
            const auto row = std::span(bytes).subspan(o * size, size);
            job.fill(tile * kTileOutputs + o, row);
            rows[o] = row.data();
          }
          pack_tile(m, tile, rows, data);
        }
      });
      m.data = data;
    }
    return memory;
  }

 private:
  using FillRow = std::function<void(int row, std::span<std::byte> out)>;
  struct Job {
    PackedMatrix* to;
    FillRow fill;
    size_t offset;
  };

  const HeadTensor& tensor(const std::string& name) const { return head_.tensors.at(name); }
  void add(PackedMatrix* to, FillRow fill) {
    constexpr size_t kAlignment = 64;
    jobs_.push_back({to, std::move(fill), bytes_});
    bytes_ += (to->bytes() + kAlignment - 1) / kAlignment * kAlignment;
    parameters_ += static_cast<int64_t>(to->n_out) * to->n_in;
  }

  const DenseTrunk& trunk_;
  const HeadTensors& head_;
  std::vector<Job> jobs_;
  size_t bytes_ = 0;
  int64_t parameters_ = 0;
};

Result<std::unique_ptr<DraftHead>> DenseHead::make(const DenseTrunk& trunk,
                                                   const HeadTensors& head) {
  const DenseConfig& c = trunk.config;
  const auto shapes = dense_head_shapes(trunk, head.config.modules);
  if (auto fits = check_head(head, shapes, c.vocab_size); !fits) return fits.error();

  std::unique_ptr<DenseHead> made(new DenseHead(trunk));
  HeadPacker packer(trunk, head);
  made->modules_.resize(head.config.modules);
  for (int k = 0; k < head.config.modules; ++k) {
    HeadModule& m = made->modules_[k];
    const std::string prefix = head_prefix(k);
    packer.matrix(prefix + "fc.weight", c.dim, 2 * c.dim, &m.fc);
    packer.vector(prefix + "pre_fc_norm_embedding.weight", &m.embedding_norm);
    packer.vector(prefix + "pre_fc_norm_hidden.weight", &m.hidden_norm);
    packer.vector(prefix + "norm.weight", &m.norm);
    for (const LayerTensor& tensor : layer_tensors(layer_config(trunk))) {
      const std::string name = layer_prefix(k) + tensor.safetensors;
      if (tensor.kind == LayerTensor::Kind::Matrix)
        packer.matrix(name, tensor.n_out, tensor.n_in, &(m.layer.*tensor.matrix));
      else
        packer.vector(name, &(m.layer.*tensor.vector));
    }
  }
  made->output_ = trunk.weights.output;
  if (!head.config.draft_vocabulary.empty())
    packer.rows(trunk.weights.output, head.config.draft_vocabulary, &made->output_);
  auto memory = packer.pack();
  if (!memory) return memory.error();
  made->memory_ = std::make_shared<const HugeBuffer>(std::move(*memory));

  const HeadModule& first = made->modules_.front();
  int64_t streamed = static_cast<int64_t>(first.fc.bytes() + made->output_.bytes());
  for (const LayerTensor& tensor : layer_tensors(layer_config(trunk)))
    if (tensor.kind == LayerTensor::Kind::Matrix)
      streamed += static_cast<int64_t>((first.layer.*tensor.matrix).bytes());
  made->info_ = {.config = head.config,
                 .dim = c.dim,
                 .parameters = packer.parameters(),
                 .weight_bytes = streamed,
                 .layer_type = to_string(first.layer.down.type),
                 .output_type = to_string(made->output_.type),
                 .draft_vocabulary = made->output_.n_out};
  return std::unique_ptr<DraftHead>(std::move(made));
}

}  // namespace

std::vector<HeadShape> dense_head_shapes(const DenseConfig& layer, int modules) {
  const int64_t dim = layer.dim;
  std::vector<HeadShape> shapes;
  for (int k = 0; k < modules; ++k) {
    const std::string prefix = head_prefix(k);
    shapes.push_back({prefix + "fc.weight", {dim, 2 * dim}});
    shapes.push_back({prefix + "pre_fc_norm_embedding.weight", {dim}});
    shapes.push_back({prefix + "pre_fc_norm_hidden.weight", {dim}});
    for (const LayerTensor& tensor : layer_tensors(layer)) {
      std::vector<int64_t> shape = {tensor.n_out};
      if (tensor.kind == LayerTensor::Kind::Matrix) shape.push_back(tensor.n_in);
      shapes.push_back({layer_prefix(k) + tensor.safetensors, std::move(shape)});
    }
    shapes.push_back({prefix + "norm.weight", {dim}});
  }
  return shapes;
}

std::vector<HeadShape> dense_head_shapes(const DenseTrunk& trunk, int modules) {
  return dense_head_shapes(layer_config(trunk), modules);
}

Result<std::unique_ptr<DraftHead>> make_dense_head(const DenseTrunk& trunk,
                                                   const HeadTensors& head) {
  return DenseHead::make(trunk, head);
}

}  // namespace paceline

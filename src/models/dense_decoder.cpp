#include "models/dense_decoder.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "fmt/format.h"
#include "kernels/attention.h"
#include "kernels/choose.h"
#include "kernels/matmul.h"
#include "kernels/rope.h"
#include "kernels/rows.h"
#include "models/dense_weights.h"
#include "models/kv_cache.h"

namespace paceline {
namespace {

// Activations of one pass. Rows of all sequences stand one behind another.
struct DenseWorkspace final : Workspace {
  int max_rows() const override { return rows_limit; }
  int max_logit_rows() const override { return logit_rows_limit; }

  int rows_limit = 0;
  int logit_rows_limit = 0;
  size_t attend_scratch_per_thread = 0;
  Kernels kernels;  // of the pass under way
  HugeBuffer memory;
  Activations prepared;
  float *h, *x, *q, *k, *v, *attended, *gate, *up, *hidden, *logits, *attend_scratch;
  float *cos, *sin;                      // (kinds of rotation, rows, head_dim / 2)
  std::vector<AttendArgs> attend_parts;  // one for each sequence
};

class DenseDecoder final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const DenseFamily& family,
                                             const Checkpoint& checkpoint,
                                             const LoadOptions& options);

  const ModelInfo& info() const override { return info_; }
  Result<std::unique_ptr<SequenceState>> make_state(int capacity, CacheType cache) const override;
  Result<std::unique_ptr<Workspace>> make_workspace(int max_rows,
                                                    int max_logit_rows) const override;
  using Model::forward;
  void forward(std::span<PassPart> parts, Workspace& workspace) const override;

 private:
  DenseDecoder(const DenseConfig& config, const KernelTable& table, int threads, bool wide)
      : config_(config),
        pool_(std::make_unique<ThreadPool>(threads)),
        kernels_{&table, pool_.get(), wide} {}

  void embed(TokenId token, std::span<float> h) const;
  void layer(int index, int rows, std::span<PassPart> parts, DenseWorkspace& s) const;
  void attention(int index, int rows, std::span<PassPart> parts, DenseWorkspace& s) const;
  void feed_forward(const DenseLayer& w, int rows, DenseWorkspace& s) const;
  void add_product(Mat<const float> x, const PackedMatrix& w, const std::vector<float>& bias,
                   const std::vector<float>& post_norm, DenseWorkspace& s) const;
  void norm_heads(Mat<float> heads, const std::vector<float>& norm, const Kernels& kernels) const;
  void write_logits(int rows, std::span<PassPart> parts, DenseWorkspace& s) const;
  void describe(const WeightLoader& loader);
  // Which of the rotations a layer has.
  int rotation_of(int layer) const {
    return frequencies_.size() > 1 && config_.layer_slides(layer) ? 1 : 0;
  }
  // Where the cosines or sines of a row stand.
  float* angles(float* all, const DenseWorkspace& s, int rotation, int row) const {
    return all + (static_cast<int64_t>(rotation) * s.rows_limit + row) * (config_.head_dim / 2);
  }

  DenseConfig config_;
  std::unique_ptr<ThreadPool> pool_;
  Kernels kernels_;
  ModelInfo info_;
  float score_scale_ = 0;
  float embedding_scale_ = 1;
  // Radians a position, (head_dim / 2): of all layers, or of full and of sliding ones.
  std::vector<std::vector<double>> frequencies_;
  DenseWeights weights_;
};

// A projection's result, with its bias where it has one.
Product product(const PackedMatrix& w, Mat<float> y, const std::vector<float>& bias,
                Store store = Store::Overwrite) {
  return {w, y, bias.empty() ? nullptr : bias.data(), store};
}

// --- one pass ------------------------------------------------------------------------------------

void DenseDecoder::embed(TokenId token, std::span<float> h) const {
  check(token >= 0 && token < config_.vocab_size, "token ids lie inside the vocabulary");
  unpack_row(weights_.embedding, token, h);
  if (embedding_scale_ == 1.0f) return;
  for (float& x : h) x = x * embedding_scale_;
}

// Norms every head of every row by itself, where the family does.
void DenseDecoder::norm_heads(Mat<float> heads, const std::vector<float>& norm,
                              const Kernels& kernels) const {
  if (norm.empty()) return;
  const Mat<float> each(heads.data, heads.rows * (heads.cols / config_.head_dim), config_.head_dim);
  rms_norm(each, norm.data(), config_.norm_eps, each, kernels);
}

// h += x · Wᵀ, the sum normed before it is added where the family does.
void DenseDecoder::add_product(Mat<const float> x, const PackedMatrix& w,
                               const std::vector<float>& bias, const std::vector<float>& post_norm,
                               DenseWorkspace& s) const {
  const Mat<float> h(s.h, x.rows, config_.dim);
  if (post_norm.empty()) {
    project(x, {product(w, h, bias, Store::Add)}, s.prepared, s.kernels);
    return;
  }
  const Mat<float> y(s.x, x.rows, config_.dim);  // free by now
  project(x, {product(w, y, bias)}, s.prepared, s.kernels);
  rms_norm(y, post_norm.data(), config_.norm_eps, y, s.kernels);
  add(h, y, s.kernels);
}

// Attention of one layer; h (rows, dim) is the residual stream.
void DenseDecoder::attention(int index, int rows, std::span<PassPart> parts,
                             DenseWorkspace& s) const {
  const DenseLayer& w = weights_.layers[index];
  const int q_dim = config_.n_heads * config_.head_dim;
  const int kv_dim = config_.n_kv_heads * config_.head_dim;
  const Mat<float> h(s.h, rows, config_.dim), x(s.x, rows, config_.dim);
  const Mat<float> q(s.q, rows, q_dim), k(s.k, rows, kv_dim), v(s.v, rows, kv_dim);
  const Mat<float> attended(s.attended, rows, q_dim);
  const KernelTable& table = *s.kernels.table;
  const int rotation = rotation_of(index);

  rms_norm(h, w.attn_norm.data(), config_.norm_eps, x, s.kernels);
  project(x, {product(w.q, q, w.q_bias), product(w.k, k, w.k_bias), product(w.v, v, w.v_bias)},
          s.prepared, s.kernels);
  norm_heads(q, w.q_norm, s.kernels);
  norm_heads(k, w.k_norm, s.kernels);
  s.attend_parts.clear();
  int row = 0;
  for (PassPart& part : parts) {
    auto& cache = static_cast<KvCache&>(*part.state);
    AttendArgs& args =
        s.attend_parts.emplace_back(AttendArgs{.q = q.row(row).data(),
                                               .out = attended.row(row).data(),
                                               .rows = part.block->rows(),
                                               .positions = part.block->positions().data(),
                                               .n_heads = config_.n_heads,
                                               .n_kv_heads = config_.n_kv_heads,
                                               .head_dim = config_.head_dim,
                                               .scale = score_scale_});
    cache.fill(index, args);
    for (const int position : part.block->positions()) {
      const float* cos = angles(s.cos, s, rotation, row);
      const float* sin = angles(s.sin, s, rotation, row);
      table.rope(q.row(row).data(), config_.n_heads, config_.head_dim, cos, sin);
      table.rope(k.row(row).data(), config_.n_kv_heads, config_.head_dim, cos, sin);
      cache.append(index, position, k.row(row).data(), v.row(row).data(), table);  // provisional
      ++row;
    }
  }
  attend(s.attend_parts, s.attend_scratch, s.attend_scratch_per_thread, s.kernels);
  add_product(attended, w.out, w.out_bias, w.attn_post_norm, s);
}

void DenseDecoder::feed_forward(const DenseLayer& w, int rows, DenseWorkspace& s) const {
  const Mat<float> h(s.h, rows, config_.dim), x(s.x, rows, config_.dim);
  const Mat<float> gate(s.gate, rows, config_.hidden_dim), up(s.up, rows, config_.hidden_dim);

  rms_norm(h, w.ffn_norm.data(), config_.norm_eps, x, s.kernels);
  project(x, {product(w.gate, gate, w.gate_bias), product(w.up, up, w.up_bias)}, s.prepared,
          s.kernels);
  if (config_.activation == Activation::Gelu)
    gelu_mul(gate, up, s.kernels);
  else
    silu_mul(gate, up, s.kernels);
  add_product(gate, w.down, w.down_bias, w.ffn_post_norm, s);
}

void DenseDecoder::layer(int index, int rows, std::span<PassPart> parts, DenseWorkspace& s) const {
  attention(index, rows, parts, s);
  feed_forward(weights_.layers[index], rows, s);
}

// Logits of the rows that each part asks for, and every part's views.
void DenseDecoder::write_logits(int rows, std::span<PassPart> parts, DenseWorkspace& s) const {
  const Mat<float> hidden(s.hidden, rows, config_.dim);
  int n_logits = 0;
  for (const PassPart& part : parts) n_logits += part.n_logits();
  check(n_logits <= s.logit_rows_limit, "the workspace has room for the logits");
  const Mat<float> logits(s.logits, n_logits, config_.vocab_size);
  const Mat<float> chosen(s.x, n_logits, config_.dim);  // free by now
  int row = 0;
  int logit_row = 0;
  for (PassPart& part : parts) {
    const int part_rows = part.block->rows();
    const int n = part.n_logits();
    part.out.hidden = hidden.middle(row, part_rows);
    part.out.logits = logits.middle(logit_row, n);
    std::copy_n(hidden.data + static_cast<int64_t>(row + part_rows - n) * config_.dim,
                static_cast<int64_t>(n) * config_.dim,
                chosen.data + static_cast<int64_t>(logit_row) * config_.dim);
    row += part_rows;
    logit_row += n;
  }
  if (n_logits == 0) return;
  project(chosen, {{weights_.output, logits}}, s.prepared, s.kernels);
  if (config_.logit_cap > 0) soft_cap(logits, static_cast<float>(config_.logit_cap), s.kernels);
}

void DenseDecoder::forward(std::span<PassPart> parts, Workspace& workspace) const {
  auto& s = static_cast<DenseWorkspace&>(workspace);
  int rows = 0;
  for (const PassPart& part : parts) rows += part.block->rows();
  check(rows <= s.rows_limit, "the blocks of a pass fit into the workspace");
  pool_->use(s.threads);
  s.kernels = kernels_;
  s.kernels.wide = s.wide_kernels;

  const Mat<float> h(s.h, rows, config_.dim);
  int row = 0;
  for (const PassPart& part : parts) {
    static_cast<KvCache&>(*part.state).open(*part.block);
    for (int i = 0; i < part.block->rows(); ++i, ++row) {
      embed(part.block->tokens()[i], h.row(row));
      for (int kind = 0; kind < static_cast<int>(frequencies_.size()); ++kind)
        rope_angles(frequencies_[kind], part.block->positions()[i], angles(s.cos, s, kind, row),
                    angles(s.sin, s, kind, row));
    }
  }
  for (int index = 0; index < config_.n_layers; ++index) layer(index, rows, parts, s);
  rms_norm(h, weights_.final_norm.data(), config_.norm_eps, Mat<float>(s.hidden, rows, config_.dim),
           s.kernels);
  write_logits(rows, parts, s);
  pool_->use(0);
}

// --- memory --------------------------------------------------------------------------------------

Result<std::unique_ptr<SequenceState>> DenseDecoder::make_state(int capacity,
                                                                CacheType cache) const {
  if (capacity > config_.context_length)
    return Error{ErrorCode::TooLarge,
                 fmt::format("a context of {} positions is more than the {} that the model was "
                             "made for",
                             capacity, config_.context_length)};
  auto made = KvCache::make({.n_layers = config_.n_layers,
                             .n_kv_heads = config_.n_kv_heads,
                             .head_dim = config_.head_dim,
                             .type = cache,
                             .window = config_.window,
                             .slides = config_.slides},
                            capacity);
  if (!made) return made.error();
  return std::unique_ptr<SequenceState>(std::move(*made));
}

Result<std::unique_ptr<Workspace>> DenseDecoder::make_workspace(int max_rows,
                                                                int max_logit_rows) const {
  auto s = std::make_unique<DenseWorkspace>();
  s->rows_limit = max_rows;
  s->logit_rows_limit = max_logit_rows;
  s->attend_scratch_per_thread = attend_scratch_floats(config_.context_length, config_.head_dim);
  const size_t q_dim = static_cast<size_t>(config_.n_heads) * config_.head_dim;
  const size_t kv_dim = static_cast<size_t>(config_.n_kv_heads) * config_.head_dim;
  const auto n = static_cast<size_t>(max_rows);
  struct Part {
    float** where;
    size_t floats;
  };
  const std::array<Part, 13> parts = {{
      {&s->h, n * config_.dim},
      {&s->x, n * config_.dim},
      {&s->q, n * q_dim},
      {&s->k, n * kv_dim},
      {&s->v, n * kv_dim},
      {&s->attended, n * q_dim},
      {&s->gate, n * config_.hidden_dim},
      {&s->up, n * config_.hidden_dim},
      {&s->hidden, n * config_.dim},
      {&s->logits, static_cast<size_t>(max_logit_rows) * config_.vocab_size},
      {&s->attend_scratch, s->attend_scratch_per_thread * pool_->size()},
      {&s->cos, frequencies_.size() * n * config_.head_dim / 2},
      {&s->sin, frequencies_.size() * n * config_.head_dim / 2},
  }};
  constexpr size_t kAlign = 32;  // floats: two cache lines, so that no two parts share one
  size_t total = 0;
  for (const Part& part : parts) total += (part.floats + kAlign) / kAlign * kAlign;
  auto memory = HugeBuffer::allocate(total * sizeof(float));
  if (!memory) return memory.error();
  auto* at = reinterpret_cast<float*>(memory->data());
  for (const Part& part : parts) {
    *part.where = at;
    at += (part.floats + kAlign) / kAlign * kAlign;
  }
  s->memory = std::move(*memory);
  const int widest =
      std::max({config_.dim, config_.hidden_dim, config_.n_heads * config_.head_dim});
  auto prepared = Activations::make(max_rows, widest);
  if (!prepared) return prepared.error();
  s->prepared = std::move(*prepared);
  s->attend_parts.reserve(max_rows);
  s->wide_kernels = kernels_.wide;
  return std::unique_ptr<Workspace>(std::move(s));
}

// --- loading -------------------------------------------------------------------------------------

// Radians of each pair a position, with whatever scaling the checkpoint asks for.
Result<std::vector<double>> scaled_frequencies(const DenseConfig& c, const RopeConfig& rope,
                                               std::span<const float> divisors,
                                               const Checkpoint& checkpoint) {
  std::vector<double> frequencies = rope_frequencies(rope.theta, c.head_dim);
  if (rope.llama3) scale_llama3(frequencies, *rope.llama3);
  for (double& frequency : frequencies)
    if (rope.linear) frequency /= *rope.linear;
  for (size_t i = 0; i < divisors.size(); ++i) frequencies[i] /= static_cast<double>(divisors[i]);
  for (const double frequency : frequencies)
    if (!(frequency >= 0 && frequency * c.context_length < 0x1p31))
      return Error{ErrorCode::BadFormat,
                   fmt::format("{}: rotary theta, scaling and divisors give a frequency of {} "
                               "radians a position, which no known model has",
                               checkpoint.path().string(), frequency)};
  return frequencies;
}

// The root of the width, in the precision in which the model was trained with it.
float embedding_scale(const DenseConfig& c, WeightType embedding, bool gguf) {
  const float root = __builtin_sqrtf(static_cast<float>(c.dim));
  if (gguf) return root;  // whoever writes these files multiplies by the whole root
  if (embedding == WeightType::BF16) return to_f32(to_bf16(root));
  if (embedding == WeightType::F16) return to_f32(to_f16(root));
  return root;
}

void DenseDecoder::describe(const WeightLoader& loader) {
  const DenseConfig& c = config_;
  info_ = {.family = c.family,
           .n_layers = c.n_layers,
           .dim = c.dim,
           .hidden_dim = c.hidden_dim,
           .n_heads = c.n_heads,
           .n_kv_heads = c.n_kv_heads,
           .head_dim = c.head_dim,
           .vocab_size = c.vocab_size,
           .context_length = c.context_length,
           .n_sliding = c.window == 0
                            ? 0
                            : static_cast<int>(std::count(c.slides.begin(), c.slides.end(), true)),
           .window = c.window,
           .parameters = loader.parameters(),
           .weight_bytes = loader.streamed_bytes(),
           .huge_bytes =
               static_cast<int64_t>(std::min(weights_.memory.huge_bytes(), weights_.memory.size())),
           .isa = kernels_.table->variant,
           .numerics = to_string(kernels_.table->numerics),
           .unused_tensors = loader.unused()};
  // An untied embedding is looked up, not streamed.
  if (weights_.output.data != weights_.embedding.data)
    info_.weight_bytes -= static_cast<int64_t>(weights_.embedding.bytes());
}

Result<std::unique_ptr<Model>> DenseDecoder::load(const DenseFamily& family,
                                                  const Checkpoint& checkpoint,
                                                  const LoadOptions& options) {
  auto config = read_dense_config(checkpoint, family);
  if (!config) return config.error();
  const bool gguf = checkpoint.kind() == Checkpoint::Kind::Gguf;
  if (gguf) {
    const auto rows = vocabulary_rows(checkpoint);
    if (!rows) return rows.error();
    config->vocab_size = *rows;
  }
  const auto table = choose_kernel_table(options.numerics);
  if (!table) return table.error();

  std::unique_ptr<DenseDecoder> model(
      new DenseDecoder(*config, **table, options.threads, options.wide));
  const DenseConfig& c = model->config_;
  DenseWeights& weights = model->weights_;
  WeightLoader loader(checkpoint, options.weights);
  ask_for_weights(c, checkpoint, loader, weights);
  auto memory = loader.load(*model->pool_, options.progress);
  if (!memory) return memory.error();
  weights.memory = std::move(*memory);
  if (weights.output.data == nullptr) weights.output = weights.embedding;

  for (const RopeConfig* rope : {&c.rope, c.sliding_rope ? &*c.sliding_rope : nullptr}) {
    if (rope == nullptr) continue;
    auto frequencies = scaled_frequencies(c, *rope, weights.rope_divisors, checkpoint);
    if (!frequencies) return frequencies.error();
    model->frequencies_.push_back(std::move(*frequencies));
  }
  model->score_scale_ = 1.0f / __builtin_sqrtf(c.query_scale > 0 ? static_cast<float>(c.query_scale)
                                                                 : static_cast<float>(c.head_dim));
  if (c.scaled_embedding)
    model->embedding_scale_ = embedding_scale(c, weights.embedding.type, gguf);
  model->describe(loader);
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<Model>> load_dense_decoder(const DenseFamily& family,
                                                  const Checkpoint& checkpoint,
                                                  const LoadOptions& options) {
  return DenseDecoder::load(family, checkpoint, options);
}

}  // namespace paceline

// Llama: a pre-norm decoder with rotary positions, grouped key heads and a gated feed-forward
// (specification: dense decoders, sections 3 and 4).
#include "models/llama.h"

#include <array>
#include <string>

#include "base/check.h"
#include "fmt/format.h"
#include "kernels/attention.h"
#include "kernels/choose.h"
#include "kernels/matmul.h"
#include "kernels/rope.h"
#include "kernels/rows.h"
#include "models/dense_config.h"
#include "models/kv_cache.h"
#include "models/weights.h"

namespace paceline {
namespace {

struct LayerWeights {
  std::vector<float> attn_norm, ffn_norm;
  PackedMatrix q, k, v, out;
  PackedMatrix gate, up, down;
  // Empty where the checkpoint has none.
  std::vector<float> q_bias, k_bias, v_bias, out_bias, gate_bias, up_bias, down_bias;
};

// Activations of one pass. Rows of all sequences stand one behind another.
struct LlamaWorkspace final : Workspace {
  int max_rows() const override { return rows_limit; }
  int max_logit_rows() const override { return logit_rows_limit; }

  int rows_limit = 0;
  int logit_rows_limit = 0;
  size_t attend_scratch_per_thread = 0;
  Kernels kernels;  // of the pass under way
  HugeBuffer memory;
  Activations prepared;
  float *h, *x, *q, *k, *v, *attended, *gate, *up, *hidden, *logits, *attend_scratch;
  float *cos, *sin;                      // (rows, head_dim / 2): the rotation of each row
  std::vector<AttendArgs> attend_parts;  // one for each sequence
};

class Llama final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const Checkpoint& checkpoint,
                                             const LoadOptions& options);

  const ModelInfo& info() const override { return info_; }
  Result<std::unique_ptr<SequenceState>> make_state(int capacity, CacheType cache) const override;
  Result<std::unique_ptr<Workspace>> make_workspace(int max_rows,
                                                    int max_logit_rows) const override;
  using Model::forward;
  void forward(std::span<PassPart> parts, Workspace& workspace) const override;

 private:
  Llama(const DenseConfig& config, const KernelTable& table, int threads, bool wide)
      : config_(config),
        pool_(std::make_unique<ThreadPool>(threads)),
        kernels_{&table, pool_.get(), wide} {}

  void ask_for_weights(WeightLoader& weights, bool gguf);
  void layer(int index, int rows, std::span<PassPart> parts, LlamaWorkspace& s) const;
  void attention(int index, int rows, std::span<PassPart> parts, LlamaWorkspace& s) const;
  void write_logits(int rows, std::span<PassPart> parts, LlamaWorkspace& s) const;
  // Where a row's cosines or sines stand.
  float* rotation(float* all, int row) const {
    return all + static_cast<int64_t>(row) * (config_.head_dim / 2);
  }

  DenseConfig config_;
  std::unique_ptr<ThreadPool> pool_;
  Kernels kernels_;
  ModelInfo info_;
  std::vector<double> frequencies_;   // radians a position, (head_dim / 2)
  std::vector<float> rope_divisors_;  // a GGUF file's own form of the llama3 scaling

  HugeBuffer memory_;
  PackedMatrix embedding_;
  PackedMatrix output_;  // the embedding where the two are tied
  std::vector<float> final_norm_;
  std::vector<LayerWeights> layers_;
};

// A projection's result, with its bias where it has one.
Product product(const PackedMatrix& w, Mat<float> y, const std::vector<float>& bias,
                Store store = Store::Overwrite) {
  return {w, y, bias.empty() ? nullptr : bias.data(), store};
}

// --- one pass ------------------------------------------------------------------------------------

// Attention of one layer; h (rows, dim) is the residual stream.
void Llama::attention(int index, int rows, std::span<PassPart> parts, LlamaWorkspace& s) const {
  const LayerWeights& w = layers_[index];
  const int q_dim = config_.n_heads * config_.head_dim;
  const int kv_dim = config_.n_kv_heads * config_.head_dim;
  const Mat<float> h(s.h, rows, config_.dim), x(s.x, rows, config_.dim);
  const Mat<float> q(s.q, rows, q_dim), k(s.k, rows, kv_dim), v(s.v, rows, kv_dim);
  const Mat<float> attended(s.attended, rows, q_dim);
  const KernelTable& table = *s.kernels.table;

  rms_norm(h, w.attn_norm.data(), config_.norm_eps, x, s.kernels);
  project(x, {product(w.q, q, w.q_bias), product(w.k, k, w.k_bias), product(w.v, v, w.v_bias)},
          s.prepared, s.kernels);
  s.attend_parts.clear();
  int row = 0;
  for (PassPart& part : parts) {
    auto& cache = static_cast<KvCache&>(*part.state);
    AttendArgs& args = s.attend_parts.emplace_back(
        AttendArgs{.q = q.row(row).data(),
                   .out = attended.row(row).data(),
                   .rows = part.block->rows(),
                   .positions = part.block->positions().data(),
                   .n_heads = config_.n_heads,
                   .n_kv_heads = config_.n_kv_heads,
                   .head_dim = config_.head_dim,
                   .scale = 1.0f / __builtin_sqrtf(static_cast<float>(config_.head_dim))});
    cache.fill(index, args);
    for (const int position : part.block->positions()) {
      const float* cos = rotation(s.cos, row);
      const float* sin = rotation(s.sin, row);
      table.rope(q.row(row).data(), config_.n_heads, config_.head_dim, cos, sin);
      table.rope(k.row(row).data(), config_.n_kv_heads, config_.head_dim, cos, sin);
      cache.append(index, position, k.row(row).data(), v.row(row).data(), table);  // provisional
      ++row;
    }
  }
  attend(s.attend_parts, s.attend_scratch, s.attend_scratch_per_thread, s.kernels);
  project(attended, {product(w.out, h, w.out_bias, Store::Add)}, s.prepared, s.kernels);
}

void Llama::layer(int index, int rows, std::span<PassPart> parts, LlamaWorkspace& s) const {
  const LayerWeights& w = layers_[index];
  const Mat<float> h(s.h, rows, config_.dim), x(s.x, rows, config_.dim);
  const Mat<float> gate(s.gate, rows, config_.hidden_dim), up(s.up, rows, config_.hidden_dim);

  attention(index, rows, parts, s);
  rms_norm(h, w.ffn_norm.data(), config_.norm_eps, x, s.kernels);
  project(x, {product(w.gate, gate, w.gate_bias), product(w.up, up, w.up_bias)}, s.prepared,
          s.kernels);
  silu_mul(gate, up, s.kernels);
  project(gate, {product(w.down, h, w.down_bias, Store::Add)}, s.prepared, s.kernels);
}

// Logits of the rows that each part asks for, and every part's views.
void Llama::write_logits(int rows, std::span<PassPart> parts, LlamaWorkspace& s) const {
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
  if (n_logits > 0) project(chosen, {{output_, logits}}, s.prepared, s.kernels);
}

void Llama::forward(std::span<PassPart> parts, Workspace& workspace) const {
  auto& s = static_cast<LlamaWorkspace&>(workspace);
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
      const TokenId token = part.block->tokens()[i];
      check(token >= 0 && token < config_.vocab_size, "token ids lie inside the vocabulary");
      unpack_row(embedding_, token, h.row(row));
      rope_angles(frequencies_, part.block->positions()[i], rotation(s.cos, row),
                  rotation(s.sin, row));
    }
  }
  for (int index = 0; index < config_.n_layers; ++index) layer(index, rows, parts, s);
  rms_norm(h, final_norm_.data(), config_.norm_eps, Mat<float>(s.hidden, rows, config_.dim),
           s.kernels);
  write_logits(rows, parts, s);
  pool_->use(0);
}

// --- memory --------------------------------------------------------------------------------------

Result<std::unique_ptr<SequenceState>> Llama::make_state(int capacity, CacheType cache) const {
  if (capacity > config_.context_length)
    return Error{ErrorCode::TooLarge,
                 fmt::format("a context of {} positions is more than the {} that the model was "
                             "made for",
                             capacity, config_.context_length)};
  auto made =
      KvCache::make({config_.n_layers, config_.n_kv_heads, config_.head_dim, cache}, capacity);
  if (!made) return made.error();
  return std::unique_ptr<SequenceState>(std::move(*made));
}

Result<std::unique_ptr<Workspace>> Llama::make_workspace(int max_rows, int max_logit_rows) const {
  auto s = std::make_unique<LlamaWorkspace>();
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
      {&s->cos, n * config_.head_dim / 2},
      {&s->sin, n * config_.head_dim / 2},
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

// A tensor's name in both containers: before and after the layer's number.
struct Names {
  std::string prefix;  // "blk.3." or "model.layers.3."
  bool gguf;
  std::string operator()(const char* in_gguf, const char* in_safetensors) const {
    return prefix + (gguf ? in_gguf : in_safetensors);
  }
};

void Llama::ask_for_weights(WeightLoader& weights, bool gguf) {
  const DenseConfig& c = config_;
  const int q_dim = c.n_heads * c.head_dim;
  const int kv_dim = c.n_kv_heads * c.head_dim;
  const RowOrder qk_order = gguf ? RowOrder::PairsToHalves : RowOrder::AsStored;
  const char* embedding = gguf ? "token_embd.weight" : "model.embed_tokens.weight";
  const char* output = gguf ? "output.weight" : "lm_head.weight";

  weights.matrix(embedding, c.vocab_size, c.dim, &embedding_);
  weights.vector(gguf ? "output_norm.weight" : "model.norm.weight", c.dim, &final_norm_);
  // What is there is the head, whatever the config says.
  if (weights.has(output) || !c.tied) weights.matrix(output, c.vocab_size, c.dim, &output_);
  if (gguf && weights.has("rope_freqs.weight"))
    weights.vector("rope_freqs.weight", c.head_dim / 2, &rope_divisors_);

  const auto bias = [&](const std::string& name, int n, std::vector<float>* to,
                        RowOrder order = RowOrder::AsStored) {
    if (weights.has(name)) weights.vector(name, n, to, order, c.head_dim);
  };
  layers_.resize(c.n_layers);
  for (int i = 0; i < c.n_layers; ++i) {
    LayerWeights& w = layers_[i];
    const Names name{fmt::format(fmt::runtime(gguf ? "blk.{}." : "model.layers.{}."), i), gguf};
    weights.vector(name("attn_norm.weight", "input_layernorm.weight"), c.dim, &w.attn_norm);
    weights.matrix(name("attn_q.weight", "self_attn.q_proj.weight"), q_dim, c.dim, &w.q, qk_order,
                   c.head_dim);
    weights.matrix(name("attn_k.weight", "self_attn.k_proj.weight"), kv_dim, c.dim, &w.k, qk_order,
                   c.head_dim);
    weights.matrix(name("attn_v.weight", "self_attn.v_proj.weight"), kv_dim, c.dim, &w.v);
    weights.matrix(name("attn_output.weight", "self_attn.o_proj.weight"), c.dim, q_dim, &w.out);
    weights.vector(name("ffn_norm.weight", "post_attention_layernorm.weight"), c.dim, &w.ffn_norm);
    weights.matrix(name("ffn_gate.weight", "mlp.gate_proj.weight"), c.hidden_dim, c.dim, &w.gate);
    weights.matrix(name("ffn_up.weight", "mlp.up_proj.weight"), c.hidden_dim, c.dim, &w.up);
    weights.matrix(name("ffn_down.weight", "mlp.down_proj.weight"), c.dim, c.hidden_dim, &w.down);
    bias(name("attn_q.bias", "self_attn.q_proj.bias"), q_dim, &w.q_bias, qk_order);
    bias(name("attn_k.bias", "self_attn.k_proj.bias"), kv_dim, &w.k_bias, qk_order);
    bias(name("attn_v.bias", "self_attn.v_proj.bias"), kv_dim, &w.v_bias);
    bias(name("attn_output.bias", "self_attn.o_proj.bias"), c.dim, &w.out_bias);
    bias(name("ffn_gate.bias", "mlp.gate_proj.bias"), c.hidden_dim, &w.gate_bias);
    bias(name("ffn_up.bias", "mlp.up_proj.bias"), c.hidden_dim, &w.up_bias);
    bias(name("ffn_down.bias", "mlp.down_proj.bias"), c.dim, &w.down_bias);
  }
}

// Rows of the embedding: in a GGUF file they decide how large the vocabulary is.
Result<int> vocabulary_rows(const Checkpoint& checkpoint) {
  const Tensor* embedding = checkpoint.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2 || embedding->shape[0] < 1 ||
      embedding->shape[0] > (1 << 24))
    return Error{ErrorCode::BadFormat, checkpoint.path().string() +
                                           ": wants a matrix token_embd.weight of 1 to 2^24 rows"};
  return static_cast<int>(embedding->shape[0]);
}

// Radians of each pair a position, with whatever scaling the checkpoint asks for.
Result<std::vector<double>> scaled_frequencies(const DenseConfig& c,
                                               std::span<const float> divisors,
                                               const Checkpoint& checkpoint) {
  std::vector<double> frequencies = rope_frequencies(c.rope_theta, c.head_dim);
  if (c.rope_llama3) scale_llama3(frequencies, *c.rope_llama3);
  for (double& frequency : frequencies)
    if (c.rope_linear) frequency /= *c.rope_linear;
  for (size_t i = 0; i < divisors.size(); ++i) frequencies[i] /= static_cast<double>(divisors[i]);
  for (const double frequency : frequencies)
    if (!(frequency >= 0 && frequency * c.context_length < 0x1p31))
      return Error{ErrorCode::BadFormat,
                   fmt::format("{}: rotary theta, scaling and divisors give a frequency of {} "
                               "radians a position, which no known model has",
                               checkpoint.path().string(), frequency)};
  return frequencies;
}

Result<std::unique_ptr<Model>> Llama::load(const Checkpoint& checkpoint,
                                           const LoadOptions& options) {
  auto config = read_dense_config(checkpoint, "llama");
  if (!config) return config.error();
  const bool gguf = checkpoint.kind() == Checkpoint::Kind::Gguf;
  if (gguf) {
    const auto rows = vocabulary_rows(checkpoint);
    if (!rows) return rows.error();
    config->vocab_size = *rows;
  }
  const auto table = choose_kernel_table(options.numerics);
  if (!table) return table.error();

  std::unique_ptr<Llama> model(new Llama(*config, **table, options.threads, options.wide));
  WeightLoader weights(checkpoint, options.weights);
  model->ask_for_weights(weights, gguf);
  auto memory = weights.load(*model->pool_, options.progress);
  if (!memory) return memory.error();
  model->memory_ = std::move(*memory);
  if (model->output_.data == nullptr) model->output_ = model->embedding_;
  auto frequencies = scaled_frequencies(model->config_, model->rope_divisors_, checkpoint);
  if (!frequencies) return frequencies.error();
  model->frequencies_ = std::move(*frequencies);

  const DenseConfig& c = model->config_;
  model->info_ = {.family = "llama",
                  .n_layers = c.n_layers,
                  .dim = c.dim,
                  .hidden_dim = c.hidden_dim,
                  .n_heads = c.n_heads,
                  .n_kv_heads = c.n_kv_heads,
                  .head_dim = c.head_dim,
                  .vocab_size = c.vocab_size,
                  .context_length = c.context_length,
                  .parameters = weights.parameters(),
                  .weight_bytes = weights.streamed_bytes(),
                  .huge_bytes = static_cast<int64_t>(
                      std::min(model->memory_.huge_bytes(), model->memory_.size())),
                  .isa = (*table)->variant,
                  .numerics = to_string((*table)->numerics),
                  .unused_tensors = weights.unused()};
  // An untied embedding is looked up, not streamed.
  if (model->output_.data != model->embedding_.data)
    model->info_.weight_bytes -= static_cast<int64_t>(model->embedding_.bytes());
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<Model>> load_llama(const Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  return Llama::load(checkpoint, options);
}

}  // namespace paceline

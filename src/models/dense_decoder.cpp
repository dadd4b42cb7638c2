#include "models/dense_decoder.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "fmt/format.h"
#include "kernels/choose.h"
#include "kernels/matmul.h"
#include "kernels/rope.h"
#include "kernels/rows.h"
#include "models/dense_head.h"
#include "models/dense_layer.h"
#include "models/dense_weights.h"
#include "models/draft_head.h"
#include "models/kv_cache.h"

namespace paceline {
namespace {

struct DenseWorkspace final : Workspace {
  int max_rows() const override { return rows.limit; }
  int max_logit_rows() const override { return logit_rows_limit; }

  int logit_rows_limit = 0;
  DenseRows rows;
  float *hidden, *logits;
  std::vector<LayerPart> parts;
};

class DenseDecoder final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const DenseFamily& family,
                                             const Checkpoint& checkpoint,
                                             const LoadOptions& options);

  const ModelInfo& info() const override { return info_; }
  Result<std::unique_ptr<Model>> beside(int threads) const override;
  Result<std::unique_ptr<SequenceState>> make_state(int capacity, CacheType cache) const override;
  Result<std::unique_ptr<Workspace>> make_workspace(int max_rows,
                                                    int max_logit_rows) const override;
  using Model::forward;
  void forward(std::span<PassPart> parts, Workspace& workspace) const override;

  std::vector<HeadShape> head_shapes(int modules) const override {
    return dense_head_shapes(trunk_, modules);
  }
  Result<std::unique_ptr<DraftHead>> make_head(const HeadTensors& head) const override {
    return make_dense_head(trunk_, head);
  }
  const DenseTrunk* dense_trunk() const override { return &trunk_; }

 private:
  DenseDecoder(const DenseConfig& config, const KernelTable& table, int threads, bool wide) {
    trunk_.config = config;
    trunk_.pool = std::make_unique<ThreadPool>(threads);
    trunk_.kernels = {&table, trunk_.pool.get(), wide};
  }

  void write_logits(int rows, std::span<PassPart> parts, DenseWorkspace& s) const;
  void describe(const WeightLoader& loader);

  DenseTrunk trunk_;
  std::shared_ptr<KvMemory> kv_memory_ = std::make_shared<KvMemory>();
  ModelInfo info_;
};

Result<std::unique_ptr<Model>> DenseDecoder::beside(int threads) const {
  std::unique_ptr<DenseDecoder> other(
      new DenseDecoder(trunk_.config, *trunk_.kernels.table, threads, trunk_.kernels.wide));
  other->trunk_.weights = trunk_.weights;
  other->trunk_.score_scale = trunk_.score_scale;
  other->trunk_.embedding_scale = trunk_.embedding_scale;
  other->trunk_.frequencies = trunk_.frequencies;
  other->kv_memory_ = kv_memory_;
  other->info_ = info_;
  return std::unique_ptr<Model>(std::move(other));
}

// --- one pass ------------------------------------------------------------------------------------

// Logits of the rows that each part asks for, and every part's views.
void DenseDecoder::write_logits(int rows, std::span<PassPart> parts, DenseWorkspace& s) const {
  const DenseConfig& c = trunk_.config;
  const Mat<float> h(s.rows.h, rows, c.dim), hidden(s.hidden, rows, c.dim);
  int n_logits = 0;
  for (const PassPart& part : parts) n_logits += part.n_logits();
  check(n_logits <= s.logit_rows_limit, "the workspace has room for the logits");
  const Mat<float> logits(s.logits, n_logits, c.vocab_size);
  const Mat<float> chosen(s.rows.x, n_logits, c.dim);  // free by now
  int row = 0;
  int logit_row = 0;
  for (PassPart& part : parts) {
    const int part_rows = part.block->rows();
    const int n = part.n_logits();
    part.out.hidden = hidden.middle(row, part_rows);
    part.out.before_norm = h.middle(row, part_rows);
    part.out.logits = logits.middle(logit_row, n);
    std::copy_n(hidden.data + static_cast<int64_t>(row + part_rows - n) * c.dim,
                static_cast<int64_t>(n) * c.dim,
                chosen.data + static_cast<int64_t>(logit_row) * c.dim);
    row += part_rows;
    logit_row += n;
  }
  if (n_logits == 0) return;
  project(chosen, {{trunk_.weights.output, logits}}, s.rows.prepared, s.rows.kernels);
  if (c.logit_cap > 0) soft_cap(logits, static_cast<float>(c.logit_cap), s.rows.kernels);
}

void DenseDecoder::forward(std::span<PassPart> parts, Workspace& workspace) const {
  auto& s = static_cast<DenseWorkspace&>(workspace);
  const DenseConfig& c = trunk_.config;
  int rows = 0;
  for (const PassPart& part : parts) rows += part.block->rows();
  check(rows <= s.rows.limit, "the blocks of a pass fit into the workspace");
  trunk_.pool->use(s.threads);
  s.rows.kernels = trunk_.kernels;
  s.rows.kernels.wide = s.wide_kernels;

  const Mat<float> h(s.rows.h, rows, c.dim);
  s.parts.clear();
  int row = 0;
  for (const PassPart& part : parts) {
    auto& cache = static_cast<KvCache&>(*part.state);
    cache.open(*part.block);
    s.parts.push_back({&cache, part.block});
    for (int i = 0; i < part.block->rows(); ++i, ++row) {
      trunk_.embed(part.block->tokens()[i], h.row(row));
      set_angles(trunk_, row, part.block->positions()[i], s.rows);
    }
  }
  for (int index = 0; index < c.n_layers; ++index) {
    const DenseLayer& w = trunk_.weights.layers[index];
    attention(trunk_, w, {index, trunk_.rotation_of(index)}, s.parts, rows, rows, s.rows);
    feed_forward(trunk_, w, 0, rows, s.rows);
  }
  rms_norm(h, trunk_.weights.final_norm.data(), c.norm_eps, Mat<float>(s.hidden, rows, c.dim),
           s.rows.kernels);
  write_logits(rows, parts, s);
  trunk_.pool->use(0);
}

// --- memory --------------------------------------------------------------------------------------

Result<std::unique_ptr<SequenceState>> DenseDecoder::make_state(int capacity,
                                                                CacheType cache) const {
  const DenseConfig& c = trunk_.config;
  if (capacity > c.context_length)
    return Error{ErrorCode::TooLarge,
                 fmt::format("a context of {} positions is more than the {} that the model was "
                             "made for",
                             capacity, c.context_length)};
  auto made = KvCache::make({.n_layers = c.n_layers,
                             .n_kv_heads = c.n_kv_heads,
                             .head_dim = c.head_dim,
                             .type = cache,
                             .window = c.window,
                             .slides = c.slides},
                            capacity, kv_memory_);
  if (!made) return made.error();
  return std::unique_ptr<SequenceState>(std::move(*made));
}

Result<std::unique_ptr<Workspace>> DenseDecoder::make_workspace(int max_rows,
                                                                int max_logit_rows) const {
  const DenseConfig& c = trunk_.config;
  auto s = std::make_unique<DenseWorkspace>();
  s->logit_rows_limit = max_logit_rows;
  const std::array<FloatBuffer, 2> more = {{
      {&s->hidden, static_cast<size_t>(max_rows) * c.dim},
      {&s->logits, static_cast<size_t>(max_logit_rows) * c.vocab_size},
  }};
  if (auto taken = s->rows.take(trunk_, max_rows, 0, more); !taken) return taken.error();
  s->parts.reserve(max_rows);
  s->wide_kernels = trunk_.kernels.wide;
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
  const DenseConfig& c = trunk_.config;
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
           .huge_bytes = static_cast<int64_t>(
               std::min(trunk_.weights.memory->huge_bytes(), trunk_.weights.memory->size())),
           .isa = trunk_.kernels.table->variant,
           .numerics = to_string(trunk_.kernels.table->numerics),
           .unused_tensors = loader.unused()};
  // An untied embedding is looked up, not streamed.
  if (trunk_.weights.output.data != trunk_.weights.embedding.data)
    info_.weight_bytes -= static_cast<int64_t>(trunk_.weights.embedding.bytes());
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
  const DenseConfig& c = model->trunk_.config;
  DenseWeights& weights = model->trunk_.weights;
  WeightLoader loader(checkpoint, options.weights);
  ask_for_weights(c, checkpoint, loader, weights);
  auto memory = loader.load(*model->trunk_.pool, options.progress);
  if (!memory) return memory.error();
  weights.memory = std::make_shared<const HugeBuffer>(std::move(*memory));
  if (weights.output.data == nullptr) weights.output = weights.embedding;

  for (const RopeConfig* rope : {&c.rope, c.sliding_rope ? &*c.sliding_rope : nullptr}) {
    if (rope == nullptr) continue;
    auto frequencies = scaled_frequencies(c, *rope, weights.rope_divisors, checkpoint);
    if (!frequencies) return frequencies.error();
    model->trunk_.frequencies.push_back(std::move(*frequencies));
  }
  model->trunk_.score_scale =
      1.0f / __builtin_sqrtf(c.query_scale > 0 ? static_cast<float>(c.query_scale)
                                               : static_cast<float>(c.head_dim));
  if (c.scaled_embedding)
    model->trunk_.embedding_scale = embedding_scale(c, weights.embedding.type, gguf);
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

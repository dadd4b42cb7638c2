// Gemma 3, text: four norms a layer that multiply by 1 + w, norms of q and k, gelu, scaled
// embeddings, and most layers with a sliding window and a rotation of their own (specification:
// gemma3). Of multimodal checkpoints the text part runs.
#include "fmt/format.h"
#include "models/dense_decoder.h"
#include "models/families.h"

namespace paceline {
namespace {

using Json = ConfigReader::Json;

constexpr int kPattern = 6;  // every sixth layer sees everything
constexpr double kTheta = 1e6;
constexpr double kSlidingTheta = 1e4;

// The multimodal releases leave out what equals these.
void assume_defaults(ConfigReader& in) {
  in.assume("num_attention_heads", 8);
  in.assume("num_key_value_heads", 4);
  in.assume("head_dim", 256);
  in.assume("query_pre_attn_scalar", 256);
  in.assume("rms_norm_eps", 1e-6);
  in.assume("max_position_embeddings", 131072);
  in.assume("vocab_size", 262208);
}

// Either object of rope_parameters, with the base from its flat key where the object has none.
RopeConfig read_one_rope(ConfigReader& in, const Json* parameters, const char* layers,
                         const char* flat_base, double base) {
  RopeConfig rope;
  const Json* own = nullptr;
  if (parameters != nullptr && parameters->contains(layers)) own = &(*parameters)[layers];
  if (own != nullptr && !own->is_object()) {
    in.fail(fmt::format("rope_parameters: {} is not an object", layers));
    own = nullptr;
  }
  rope.theta = own != nullptr && own->contains("rope_theta") ? in.positive(*own, "rope_theta")
                                                             : in.positive_or(flat_base, base);
  if (own != nullptr) read_rope_scaling(in, *own, layers, rope);
  return rope;
}

void read_ropes(ConfigReader& in, DenseConfig& c) {
  const Json* parameters = in.object("rope_parameters");
  const Json* scaling = in.object("rope_scaling");  // of full layers only
  if (parameters != nullptr && !parameters->contains("full_attention") &&
      !parameters->contains("sliding_attention"))
    in.fail("rope_parameters wants objects full_attention and sliding_attention");
  c.rope = read_one_rope(in, parameters, "full_attention", "rope_theta", kTheta);
  c.sliding_rope =
      read_one_rope(in, parameters, "sliding_attention", "rope_local_base_freq", kSlidingTheta);
  if (scaling != nullptr) {
    RopeConfig other = c.rope;
    other.linear.reset();
    read_rope_scaling(in, *scaling, "rope_scaling", other);
    if (c.rope.linear && c.rope.linear != other.linear)
      in.fail("rope_parameters and rope_scaling say different things");
    c.rope = other;
  }
  if (c.rope.llama3 || c.sliding_rope->llama3)
    in.unsupported("a rotation of type 'llama3' is not supported in this family");
}

void slide_by_period(DenseConfig& c, int period) {
  for (int layer = 0; layer < c.n_layers; ++layer) c.slides.push_back((layer + 1) % period != 0);
}

void read_json(ConfigReader& in, DenseConfig& c) {
  assume_defaults(in);
  read_sizes(in, c, /*tied=*/true);
  read_ropes(in, c);
  in.only("hidden_activation", "gelu_pytorch_tanh");
  c.query_scale = in.positive("query_pre_attn_scalar");
  if (in.has("final_logit_softcapping")) c.logit_cap = in.positive("final_logit_softcapping");
  c.window = in.count("sliding_window");
  c.norms_lack_one = true;
  if (auto listed = read_layer_types(in, c.n_layers)) {
    c.slides = std::move(*listed);
    return;
  }
  slide_by_period(
      c, in.count_or("sliding_window_pattern", in.count_or("_sliding_window_pattern", kPattern)));
}

void read_gguf(ConfigReader& in, DenseConfig& c) {
  read_sizes(in, c);
  read_rope(in, c);
  // The scale is not stored; the 27B is known by its layers.
  constexpr int kLayersOf27B = 62;
  c.query_scale = c.n_layers == kLayersOf27B ? static_cast<double>(c.dim) / c.n_heads : c.head_dim;
  if (in.has("final_logit_softcapping")) c.logit_cap = in.positive("final_logit_softcapping");
  if (!in.has("attention.sliding_window")) return;
  c.window = in.count("attention.sliding_window", 0);
  c.sliding_rope = RopeConfig{
      .theta = in.positive_or("rope.freq_base_swa", kSlidingTheta), .linear = {}, .llama3 = {}};
  const auto pattern = in.integers("attention.sliding_window_pattern");
  if (pattern && std::ssize(*pattern) == c.n_layers)
    for (const int64_t slides : *pattern) c.slides.push_back(slides != 0);
  else if (pattern)
    in.fail("attention.sliding_window_pattern is as long as there are layers, or one number");
  else
    slide_by_period(c, in.count_or("attention.sliding_window_pattern", kPattern));
}

void read(ConfigReader& in, DenseConfig& c) {
  c.activation = Activation::Gelu;
  c.scaled_embedding = true;
  c.qk_norms = true;
  c.post_norms = true;
  if (in.is_gguf())
    read_gguf(in, c);
  else
    read_json(in, c);
}

}  // namespace

DenseFamily gemma3_family() { return {"gemma3", "text_config", read}; }

Result<std::unique_ptr<Model>> load_gemma3(const Checkpoint& checkpoint,
                                           const LoadOptions& options) {
  return load_dense_decoder(gemma3_family(), checkpoint, options);
}

}  // namespace paceline

#include "apps/synth_shapes.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace paceline::apps {
namespace {

constexpr int kSmolVocab = 49152;
constexpr int kLlamaVocab = 128256;
constexpr int kQwenVocab = 151936;
constexpr int kGemmaVocab = 262144;

// family, size, dim, hidden_dim, layers, heads, kv heads, head_dim, vocabulary, tied, context,
// theta, factor, eps, and for some window, full_every, sliding_theta: from the config.json of the
// releases named behind.
constexpr std::array kShapes = {
    SynthShape{"llama", "tiny", 64, 160, 2, 4, 2, 16, 512, true, 2048, 1e4, 0, 1e-5},
    SynthShape{"llama", "135m", 576, 1536, 30, 9, 3, 64, kSmolVocab, true, 8192, 1e5, 0,
               1e-5},  // SmolLM2-135M
    SynthShape{"llama", "0.6b", 1024, 3072, 28, 16, 8, 128, kQwenVocab, true, 40960, 1e6, 0,
               1e-6},  // Qwen3-0.6B without its norms of q and k
    SynthShape{"llama", "1b", 2048, 8192, 16, 32, 8, 64, kLlamaVocab, true, 131072, 5e5, 32,
               1e-5},  // Llama-3.2-1B
    SynthShape{"llama", "3b", 3072, 8192, 28, 24, 8, 128, kLlamaVocab, true, 131072, 5e5, 32,
               1e-5},  // Llama-3.2-3B
    SynthShape{"llama", "8b", 4096, 14336, 32, 32, 8, 128, kLlamaVocab, false, 8192, 5e5, 0,
               1e-5},  // Llama-3-8B
    SynthShape{"mistral", "tiny", 64, 160, 2, 4, 2, 32, 512, false, 2048, 1e4, 0, 1e-5, 24},
    SynthShape{"mistral", "7b", 4096, 14336, 32, 32, 8, 128, 32000, false, 32768, 1e4, 0, 1e-5,
               4096},  // Mistral-7B v0.1
    SynthShape{"qwen2", "tiny", 64, 160, 2, 4, 2, 16, 512, true, 2048, 1e6, 0, 1e-6},
    SynthShape{"qwen2", "0.5b", 896, 4864, 24, 14, 2, 64, kQwenVocab, true, 32768, 1e6, 0,
               1e-6},  // Qwen2.5-0.5B
    SynthShape{"qwen3", "tiny", 64, 160, 2, 4, 2, 32, 512, true, 2048, 1e6, 0, 1e-6},
    SynthShape{"qwen3", "0.6b", 1024, 3072, 28, 16, 8, 128, kQwenVocab, true, 40960, 1e6, 0, 1e-6},
    SynthShape{"qwen3", "1.7b", 2048, 6144, 28, 16, 8, 128, kQwenVocab, true, 40960, 1e6, 0, 1e-6},
    SynthShape{"qwen3", "4b", 2560, 9728, 36, 32, 8, 128, kQwenVocab, true, 40960, 1e6, 0, 1e-6},
    SynthShape{"qwen3", "8b", 4096, 12288, 36, 32, 8, 128, kQwenVocab, false, 40960, 1e6, 0, 1e-6},
    SynthShape{"gemma3", "tiny", 64, 160, 4, 4, 1, 32, 512, true, 2048, 1e6, 0, 1e-6, 24, 3, 1e4},
    SynthShape{"gemma3", "270m", 640, 2048, 18, 4, 1, 256, kGemmaVocab, true, 32768, 1e6, 0, 1e-6,
               512, 6, 1e4},
    SynthShape{"gemma3", "1b", 1152, 6912, 26, 4, 1, 256, kGemmaVocab, true, 32768, 1e6, 0, 1e-6,
               512, 6, 1e4},
};

// Sixty-four well mixed bits of a counter: SplitMix64 (Steele, Lea, Flood 2014).
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t hash_of(std::string_view text) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// 32 bits to [-1, 1), exactly.
float unit(uint32_t bits) { return static_cast<float>(static_cast<int32_t>(bits) >> 8) * 0x1p-23f; }

}  // namespace

std::span<const SynthShape> synth_shapes() { return kShapes; }

Result<SynthShape> find_synth_shape(std::string_view family, std::string_view size) {
  std::string sizes;
  for (const SynthShape& shape : kShapes) {
    if (shape.family != family) continue;
    if (shape.size == size) return shape;
    sizes += (sizes.empty() ? "" : ", ") + std::string(shape.size);
  }
  return Error{ErrorCode::BadUsage,
               fmt::format("--size wants one of {} for {}, not '{}'", sizes, family, size)};
}

int64_t SynthTensor::elements() const {
  int64_t n = 1;
  for (const int64_t length : shape) n *= length;
  return n;
}

std::vector<SynthTensor> synth_tensors(const SynthShape& shape) {
  const int64_t dim = shape.dim;
  const int64_t q_rows = int64_t{shape.n_heads} * shape.head_dim;
  const int64_t kv_rows = int64_t{shape.n_kv_heads} * shape.head_dim;
  const int permuted = shape.architecture() == "llama" ? shape.head_dim : 0;
  const bool gemma = shape.family == "gemma3";
  const Draw norm = gemma ? Draw::NormLess1 : Draw::Norm;
  std::vector<SynthTensor> tensors;
  tensors.push_back(
      {"model.embed_tokens.weight", "token_embd.weight", {shape.vocab_size, dim}, Draw::Embedding});
  for (int layer = 0; layer < shape.n_layers; ++layer) {
    const auto add_as = [&](std::string_view name, std::string_view gguf_name,
                            std::string_view kind, std::vector<int64_t> size, Draw draw,
                            int rows_per_head = 0) {
      tensors.push_back({fmt::format("model.layers.{}.{}.{}", layer, name, kind),
                         fmt::format("blk.{}.{}.{}", layer, gguf_name, kind), std::move(size), draw,
                         rows_per_head});
    };
    const auto add = [&](std::string_view name, std::string_view gguf_name,
                         std::vector<int64_t> size, int rows_per_head = 0) {
      const Draw draw = size.size() == 1 ? norm : Draw::Matrix;
      add_as(name, gguf_name, "weight", std::move(size), draw, rows_per_head);
    };
    add("input_layernorm", "attn_norm", {dim});
    add("self_attn.q_proj", "attn_q", {q_rows, dim}, permuted);
    add("self_attn.k_proj", "attn_k", {kv_rows, dim}, permuted);
    add("self_attn.v_proj", "attn_v", {kv_rows, dim});
    add("self_attn.o_proj", "attn_output", {dim, q_rows});
    if (shape.family == "qwen2") {
      add_as("self_attn.q_proj", "attn_q", "bias", {q_rows}, Draw::Bias);
      add_as("self_attn.k_proj", "attn_k", "bias", {kv_rows}, Draw::Bias);
      add_as("self_attn.v_proj", "attn_v", "bias", {kv_rows}, Draw::Bias);
    }
    if (shape.family == "qwen3" || gemma) {
      add("self_attn.q_norm", "attn_q_norm", {shape.head_dim});
      add("self_attn.k_norm", "attn_k_norm", {shape.head_dim});
    }
    add("post_attention_layernorm", gemma ? "post_attention_norm" : "ffn_norm", {dim});
    if (gemma) {
      add("pre_feedforward_layernorm", "ffn_norm", {dim});
      add("post_feedforward_layernorm", "post_ffw_norm", {dim});
    }
    add("mlp.gate_proj", "ffn_gate", {shape.hidden_dim, dim});
    add("mlp.up_proj", "ffn_up", {shape.hidden_dim, dim});
    add("mlp.down_proj", "ffn_down", {dim, shape.hidden_dim});
  }
  tensors.push_back({"model.norm.weight", "output_norm.weight", {dim}, norm});
  if (!shape.tied) {
    tensors.push_back({"lm_head.weight", "output.weight", {shape.vocab_size, dim}, Draw::Matrix});
  }
  return tensors;
}

int64_t source_row(const SynthTensor& tensor, int64_t row) {
  if (tensor.rows_per_head == 0) return row;
  const int64_t head = row / tensor.rows_per_head;
  const int64_t place = row % tensor.rows_per_head;  // 2 i + s there, s * half + i here
  return head * tensor.rows_per_head + (place % 2) * (tensor.rows_per_head / 2) + place / 2;
}

void draw_row(const SynthTensor& tensor, uint64_t seed, int64_t row, std::span<float> values) {
  float center = 0;
  float reach = 0;  // half the width of the range; a uniform range has variance reach^2 / 3
  switch (tensor.draw) {
    case Draw::Matrix:
      reach = std::sqrt(3.0f / static_cast<float>(tensor.row_length()));
      break;
    case Draw::Embedding:
      reach = 0.02f * std::sqrt(3.0f);
      break;
    case Draw::Norm:
      center = 1;
      reach = 0.1f;
      break;
    case Draw::NormLess1:
    case Draw::Bias:
      reach = 0.1f;
      break;
  }
  const uint64_t key = mixed(mixed(seed) ^ hash_of(tensor.name));
  const auto first = static_cast<uint64_t>(row) * values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t index = first + i;
    const uint64_t bits = mixed(key + index / 2);  // two values of 32 bits each
    const auto half = static_cast<uint32_t>(index % 2 == 0 ? bits : bits >> 32);
    values[i] = center + reach * unit(half);
  }
}

std::vector<float> rope_divisors(const SynthShape& shape) {
  constexpr double kLowFrequencyFactor = 1;
  constexpr double kHighFrequencyFactor = 4;
  constexpr double kOriginalContext = 8192;
  constexpr double kPi = 3.14159265358979323846;
  std::vector<float> divisors;
  for (int i = 0; i < shape.head_dim / 2; ++i) {
    const double frequency = std::pow(shape.rope_theta, -2.0 * i / shape.head_dim);
    const double wavelength = 2 * kPi / frequency;
    double divisor = 1;
    if (wavelength > kOriginalContext / kLowFrequencyFactor) {
      divisor = shape.rope_factor;
    } else if (wavelength >= kOriginalContext / kHighFrequencyFactor) {
      const double m = (kOriginalContext / wavelength - kLowFrequencyFactor) /
                       (kHighFrequencyFactor - kLowFrequencyFactor);
      divisor = 1 / ((1 - m) / shape.rope_factor + m);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

}  // namespace paceline::apps

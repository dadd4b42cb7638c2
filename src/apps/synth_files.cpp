#include "apps/synth_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/threads.h"
#include "io/output_file.h"
#include "io/quantize.h"
#include "io/writer.h"
#include "text/synth_vocab.h"

namespace paceline::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool is_gguf(DType type) { return type != DType::F32 && type != DType::BF16; }

// The type of one tensor in a checkpoint whose matrices are of `type`.
DType type_of(const SynthTensor& tensor, const SynthShape& shape, DType type) {
  if (!is_gguf(type)) return type;
  if (tensor.shape.size() == 1) return DType::F32;
  const bool has_vocabulary = tensor.shape[0] == shape.vocab_size;
  return has_vocabulary ? DType::Q8_0 : type;
}

// Draws the rows that a writer asks for, all threads at once.
class RowSource {
 public:
  RowSource(const SynthJob& job, const std::vector<SynthTensor>& tensors,
            const std::vector<TensorSpec>& specs)
      : job_(job), tensors_(tensors), specs_(specs), pool_(job.threads) {
    for (const TensorSpec& spec : specs) bytes_ += spec.rows() * spec.row_bytes();
  }

  Result<void> fill(size_t index, int64_t first_row, std::span<std::byte> rows) {
    if (job_.stop && job_.stop()) {
      return Error{ErrorCode::Interrupted, "interrupted; nothing was written"};
    }
    const TensorSpec& spec = specs_[index];
    if (index >= tensors_.size()) {  // the divisors of the rotation, behind all drawn tensors
      const std::vector<float> divisors = rope_divisors(job_.shape);
      quantize(spec.type, divisors, rows);
      return {};
    }
    const SynthTensor& tensor = tensors_[index];
    const bool gguf = is_gguf(job_.type);
    const int64_t row_bytes = spec.row_bytes();
    const int64_t n_rows = static_cast<int64_t>(rows.size()) / row_bytes;
    pool_.split(n_rows, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(tensor.row_length()));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = first_row + i;
        draw_row(tensor, job_.seed, gguf ? source_row(tensor, row) : row, values);
        if (gguf && tensor.draw == Draw::NormLess1)
          for (float& x : values) x = 1.0f + x;
        quantize(spec.type, values,
                 rows.subspan(static_cast<size_t>(i * row_bytes), static_cast<size_t>(row_bytes)));
      }
    });
    done_ += static_cast<int64_t>(rows.size());
    if (job_.progress) job_.progress(static_cast<double>(done_) / static_cast<double>(bytes_));
    return {};
  }

 private:
  const SynthJob& job_;
  const std::vector<SynthTensor>& tensors_;
  const std::vector<TensorSpec>& specs_;
  ThreadPool pool_;
  int64_t bytes_ = 0;
  int64_t done_ = 0;
};

struct ConfigNames {
  const char* family;
  const char* architecture;
  const char* model_type;
};
constexpr ConfigNames kConfigNames[] = {
    {"llama", "LlamaForCausalLM", "llama"},         {"mistral", "MistralForCausalLM", "mistral"},
    {"qwen2", "Qwen2ForCausalLM", "qwen2"},         {"qwen3", "Qwen3ForCausalLM", "qwen3"},
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text"},
};

// What each family's config.json says beside what all of them say.
void add_family_settings(const SynthShape& shape, Json& config) {
  if (shape.family == "gemma3") {
    config["hidden_activation"] = "gelu_pytorch_tanh";
    config["query_pre_attn_scalar"] = shape.head_dim;
    config["sliding_window"] = shape.window;
    config["sliding_window_pattern"] = shape.full_every;
    config["rope_local_base_freq"] = shape.sliding_theta;
    config["final_logit_softcapping"] = nullptr;
    config["attn_logit_softcapping"] = nullptr;
  } else {
    config["hidden_act"] = "silu";
  }
  if (shape.family == "mistral") config["sliding_window"] = shape.window;
  if (shape.family == "qwen2" || shape.family == "qwen3") config["use_sliding_window"] = false;
  if (shape.family != "mistral" && shape.family != "qwen2") config["attention_bias"] = false;
  if (shape.family == "llama") config["mlp_bias"] = false;
}

Json config_json(const SynthJob& job, const SynthVocab& vocab) {
  const SynthShape& shape = job.shape;
  const auto* names = std::find_if(std::begin(kConfigNames), std::end(kConfigNames),
                                   [&](const auto& entry) { return entry.family == shape.family; });
  check(names != std::end(kConfigNames), "a family that synth draws has a name in config.json");
  Json config{{"architectures", {names->architecture}},
              {"model_type", names->model_type},
              {"hidden_size", shape.dim},
              {"intermediate_size", shape.hidden_dim},
              {"num_hidden_layers", shape.n_layers},
              {"num_attention_heads", shape.n_heads},
              {"num_key_value_heads", shape.n_kv_heads},
              {"head_dim", shape.head_dim},
              {"vocab_size", shape.vocab_size},
              {"max_position_embeddings", shape.context_length},
              {"rms_norm_eps", shape.norm_eps},
              {"rope_theta", shape.rope_theta},
              {"rope_scaling", nullptr},
              {"tie_word_embeddings", shape.tied},
              {"bos_token_id", vocab.bos},
              {"eos_token_id", vocab.eos},
              {"torch_dtype", job.type == DType::F32 ? "float32" : "bfloat16"}};
  add_family_settings(shape, config);
  if (shape.rope_factor > 0) {
    config["rope_scaling"] = Json{{"rope_type", "llama3"},
                                  {"factor", shape.rope_factor},
                                  {"low_freq_factor", 1.0},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 8192}};
  }
  return config;
}

std::vector<GgufKeyValue> gguf_metadata(const SynthJob& job, const SynthVocab& vocab) {
  const SynthShape& shape = job.shape;
  const std::string family(shape.architecture());
  const auto count = [](int n) { return static_cast<uint32_t>(n); };
  std::vector<GgufKeyValue> keys{
      {"general.architecture", family},
      {"general.name", fmt::format("synth {} {} seed {}", shape.family, shape.size, job.seed)},
      {"general.file_type", job.type == DType::Q8_0   ? 7u
                            : job.type == DType::Q4_0 ? 2u
                                                      : 3u},
      {family + ".block_count", count(shape.n_layers)},
      {family + ".context_length", count(shape.context_length)},
      {family + ".embedding_length", count(shape.dim)},
      {family + ".feed_forward_length", count(shape.hidden_dim)},
      {family + ".attention.head_count", count(shape.n_heads)},
      {family + ".attention.head_count_kv", count(shape.n_kv_heads)},
      {family + ".attention.key_length", count(shape.head_dim)},
      {family + ".attention.value_length", count(shape.head_dim)},
      {family + ".attention.layer_norm_rms_epsilon", static_cast<float>(shape.norm_eps)},
      {family + ".rope.freq_base", static_cast<float>(shape.rope_theta)},
      {family + ".vocab_size", count(shape.vocab_size)}};
  if (family == "llama") keys.push_back({family + ".rope.dimension_count", count(shape.head_dim)});
  if (family == "gemma3") {
    keys.push_back({family + ".attention.sliding_window", count(shape.window)});
    keys.push_back({family + ".attention.sliding_window_pattern", count(shape.full_every)});
    keys.push_back({family + ".rope.freq_base_swa", static_cast<float>(shape.sliding_theta)});
  }
  keys.push_back({"tokenizer.ggml.model", std::string("gpt2")});
  keys.push_back({"tokenizer.ggml.pre", vocab.pre});
  keys.push_back({"tokenizer.ggml.tokens", vocab.tokens});
  keys.push_back({"tokenizer.ggml.token_type", vocab.token_types});
  keys.push_back({"tokenizer.ggml.merges", vocab.merges});
  keys.push_back({"tokenizer.ggml.bos_token_id", static_cast<uint32_t>(vocab.bos)});
  keys.push_back({"tokenizer.ggml.eos_token_id", static_cast<uint32_t>(vocab.eos)});
  keys.push_back({"tokenizer.ggml.add_bos_token", false});
  keys.push_back({"tokenizer.chat_template", synth_chat_template()});
  return keys;
}

// The files of a safetensors folder but the weights.
Result<void> write_folder_texts(const SynthJob& job, const SynthVocab& vocab,
                                std::vector<std::string>& files) {
  const Json generation{{"bos_token_id", vocab.bos}, {"eos_token_id", vocab.eos}};
  const std::pair<const char*, std::string> texts[] = {
      {"config.json", config_json(job, vocab).dump(2)},
      {"generation_config.json", generation.dump(2)},
      {"tokenizer.json", synth_tokenizer_json(vocab)},
      {"tokenizer_config.json", synth_tokenizer_config(vocab)}};
  files.reserve(files.size() + std::size(texts) + 1);
  for (const auto& [name, text] : texts) {
    const fs::path path = job.folder / name;
    if (auto written = write_text_file(path, text + "\n"); !written) return written;
    files.push_back(path.string());
  }
  return {};
}

Result<std::vector<std::string>> write_files(const SynthJob& job) {
  const auto vocab = synth_vocab(job.shape.vocab_size);
  if (!vocab) return vocab.error();
  const std::vector<SynthTensor> tensors = synth_tensors(job.shape);
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size() + 1);
  for (const SynthTensor& tensor : tensors) {
    specs.push_back({is_gguf(job.type) ? tensor.gguf_name : tensor.name,
                     type_of(tensor, job.shape, job.type), tensor.shape});
  }
  if (is_gguf(job.type) && job.shape.rope_factor > 0) {
    specs.push_back({"rope_freqs.weight", DType::F32, {job.shape.head_dim / 2}});
  }
  RowSource source(job, tensors, specs);
  const FillRows fill = [&](size_t tensor, int64_t first_row, std::span<std::byte> rows) {
    return source.fill(tensor, first_row, rows);
  };

  std::vector<std::string> files;
  if (is_gguf(job.type)) {
    const fs::path path = job.folder / fmt::format("{}-{}.{}.gguf", job.shape.family,
                                                   job.shape.size, to_string(job.type));
    if (auto ok = write_gguf(path, gguf_metadata(job, *vocab), specs, fill); !ok) return ok.error();
    files.push_back(path.string());
    return files;
  }
  if (auto ok = write_folder_texts(job, *vocab, files); !ok) return ok.error();
  const fs::path path = job.folder / "model.safetensors";
  if (auto ok = write_safetensors(path, specs, {}, fill); !ok) return ok.error();
  files.push_back(path.string());
  return files;
}

}  // namespace

Result<std::vector<std::string>> write_synth(const SynthJob& job) {
  std::error_code fault;
  const bool existed = fs::exists(job.folder, fault);
  if (existed && !fs::is_directory(job.folder, fault)) {
    return Error{ErrorCode::BadUsage,
                 fmt::format("--out {}: there is a file of that name", job.folder.string())};
  }
  if (existed && !fs::is_empty(job.folder, fault)) {
    return Error{ErrorCode::BadUsage, fmt::format("--out {}: the folder is not empty; choose a new "
                                                  "one",
                                                  job.folder.string())};
  }
  if (!existed && !fs::create_directories(job.folder, fault)) {
    return Error{ErrorCode::Io, fmt::format("--out {}: cannot make the folder: {}",
                                            job.folder.string(), fault.message())};
  }
  auto files = write_files(job);
  if (!files) {  // the folder was empty, so all that is in it is ours
    for (const auto& entry : fs::directory_iterator(job.folder, fault)) {
      fs::remove(entry.path(), fault);
    }
    if (!existed) fs::remove(job.folder, fault);
  }
  return files;
}

}  // namespace paceline::apps

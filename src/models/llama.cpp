// Llama: Llama 2 and 3, SmolLM2 and whatever else calls itself `llama`; in GGUF files Mistral too
// (specification: dense decoders).
#include "models/dense_decoder.h"
#include "models/families.h"

namespace paceline {
namespace {

void read(ConfigReader& in, DenseConfig& c) {
  if (!in.is_gguf()) in.assume("num_key_value_heads", in.count("num_attention_heads"));
  read_sizes(in, c);
  read_rope(in, c);
  in.only("hidden_act", "silu");
  c.qkv_bias = c.out_bias = bias_by_flag(in, "attention_bias");
  c.ffn_bias = bias_by_flag(in, "mlp_bias");
  c.qk_rows_in_pairs = in.is_gguf();
}

}  // namespace

DenseFamily llama_family() { return {"llama", nullptr, read}; }

Result<std::unique_ptr<Model>> load_llama(const Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  return load_dense_decoder(llama_family(), checkpoint, options);
}

}  // namespace paceline

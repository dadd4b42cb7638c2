// Mistral: Llama without biases and with one sliding window for all layers (specification: dense
// decoders). Its GGUF files call themselves `llama` and have lost the window: they and the
// safetensors of a model that has one differ once a text is longer than it.
#include "models/dense_decoder.h"
#include "models/families.h"

namespace paceline {
namespace {

void read(ConfigReader& in, DenseConfig& c) {
  read_sizes(in, c);
  read_rope(in, c);
  in.only("hidden_act", "silu");
  if (in.is_null("sliding_window")) return;
  in.assume("sliding_window", 4096);
  c.window = in.count("sliding_window");
  c.slides.assign(c.n_layers, true);
}

}  // namespace

DenseFamily mistral_family() { return {"mistral", nullptr, read}; }

Result<std::unique_ptr<Model>> load_mistral(const Checkpoint& checkpoint,
                                            const LoadOptions& options) {
  return load_dense_decoder(mistral_family(), checkpoint, options);
}

}  // namespace paceline

// Qwen2 and Qwen2.5: biases on q, k and v that no setting announces, none elsewhere (specification:
// dense decoders).
#include "models/dense_decoder.h"
#include "models/families.h"

namespace paceline {
namespace {

void read(ConfigReader& in, DenseConfig& c) {
  read_sizes(in, c);
  read_rope(in, c);
  in.only("hidden_act", "silu");
  read_switched_window(in, c);
  c.qkv_bias = Bias::Required;
}

}  // namespace

DenseFamily qwen2_family() { return {"qwen2", nullptr, read}; }

Result<std::unique_ptr<Model>> load_qwen2(const Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  return load_dense_decoder(qwen2_family(), checkpoint, options);
}

}  // namespace paceline

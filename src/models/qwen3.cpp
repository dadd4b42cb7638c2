// Qwen3, dense: norms of every head of q and k, heads of a width of their own (specification: dense
// decoders).
#include "models/dense_decoder.h"
#include "models/families.h"

namespace paceline {
namespace {

void read(ConfigReader& in, DenseConfig& c) {
  if (in.is_null("head_dim")) in.fail("wants a whole number head_dim, found null");
  in.assume("head_dim", 128);
  read_sizes(in, c);
  read_rope(in, c);
  in.only("hidden_act", "silu");
  read_switched_window(in, c);
  c.qkv_bias = c.out_bias = bias_by_flag(in, "attention_bias");
  c.qk_norms = true;
}

}  // namespace

DenseFamily qwen3_family() { return {"qwen3", nullptr, read}; }

Result<std::unique_ptr<Model>> load_qwen3(const Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  return load_dense_decoder(qwen3_family(), checkpoint, options);
}

}  // namespace paceline

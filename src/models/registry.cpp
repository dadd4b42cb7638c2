#include "models/registry.h"

#include <array>
#include <string>

#include "io/shown.h"
#include "models/dense_config.h"
#include "models/families.h"

namespace paceline {
namespace {

enum class Containers { Both, Safetensors };

struct Family {
  std::string_view name;  // model_type of config.json, general.architecture of GGUF
  LoadFamily* load;
  DescribeFamily* dense;
  Containers containers = Containers::Both;

  bool is_in(Checkpoint::Kind kind) const {
    return containers == Containers::Both || kind == Checkpoint::Kind::Safetensors;
  }
};

constexpr std::array kFamilies = {
    Family{"gemma3", load_gemma3, gemma3_family},
    Family{"gemma3_text", load_gemma3, gemma3_family, Containers::Safetensors},
    Family{"llama", load_llama, llama_family},
    Family{"mistral", load_mistral, mistral_family, Containers::Safetensors},
    Family{"qwen2", load_qwen2, qwen2_family},
    Family{"qwen3", load_qwen3, qwen3_family},
};

Result<const Family*> family_in(const Checkpoint& checkpoint) {
  const auto name = family_of(checkpoint);
  if (!name) return name.error();
  std::string known;
  for (const Family& family : kFamilies) {
    if (!family.is_in(checkpoint.kind())) continue;
    if (family.name == *name) return &family;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  return Error{ErrorCode::Unsupported, checkpoint.path().string() + ": family " +
                                           quoted_name(*name) +
                                           " is not known; known are: " + known};
}

}  // namespace

Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  const auto family = family_in(checkpoint);
  if (!family) return family.error();
  return (*family)->load(checkpoint, options);
}

Result<DenseConfig> read_config(const Checkpoint& checkpoint) {
  const auto family = family_in(checkpoint);
  if (!family) return family.error();
  return read_dense_config(checkpoint, (*family)->dense());
}

}  // namespace paceline

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
  Containers containers = Containers::Both;

  bool is_in(Checkpoint::Kind kind) const {
    return containers == Containers::Both || kind == Checkpoint::Kind::Safetensors;
  }
};

constexpr std::array kFamilies = {
    Family{"gemma3", load_gemma3}, Family{"gemma3_text", load_gemma3, Containers::Safetensors},
    Family{"llama", load_llama},   Family{"mistral", load_mistral, Containers::Safetensors},
    Family{"qwen2", load_qwen2},   Family{"qwen3", load_qwen3},
};

}  // namespace

Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  const auto name = family_of(checkpoint);
  if (!name) return name.error();
  std::string known;
  for (const Family& family : kFamilies) {
    if (!family.is_in(checkpoint.kind())) continue;
    if (family.name == *name) return family.load(checkpoint, options);
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  return Error{ErrorCode::Unsupported, checkpoint.path().string() + ": family " +
                                           quoted_name(*name) +
                                           " is not known; known are: " + known};
}

}  // namespace paceline

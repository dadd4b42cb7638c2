#include "models/registry.h"

#include <array>
#include <string>

#include "models/dense_config.h"
#include "models/llama.h"

namespace paceline {
namespace {

struct Family {
  std::string_view name;  // model_type of config.json, general.architecture of GGUF
  Result<std::unique_ptr<Model>> (*load)(const Checkpoint&, const LoadOptions&);
};

constexpr std::array kFamilies = {
    Family{"llama", load_llama},
};

}  // namespace

Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint,
                                          const LoadOptions& options) {
  const auto name = family_of(checkpoint);
  if (!name) return name.error();
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.name == *name) return family.load(checkpoint, options);
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  return Error{ErrorCode::Unsupported, checkpoint.path().string() + ": family '" + *name +
                                           "' is not known; known are: " + known};
}

}  // namespace paceline

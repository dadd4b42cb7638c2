// The Llama family: Llama 2 and 3, SmolLM2, and whatever else calls itself `llama`.
#pragma once

#include <memory>

#include "base/result.h"
#include "models/registry.h"

namespace paceline {

Result<std::unique_ptr<Model>> load_llama(const Checkpoint& checkpoint, const LoadOptions& options);

}  // namespace paceline

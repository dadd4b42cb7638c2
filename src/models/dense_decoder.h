// The pre-norm decoder that most open-weight families are: rotary positions, grouped key heads, a
// gated feed-forward. What differs between families is a setting of DenseConfig
// (specifications: dense decoders; gemma3).
#pragma once

#include <memory>

#include "base/result.h"
#include "models/dense_config.h"
#include "models/registry.h"

namespace paceline {

// A trunk of this family. BadFormat and Unsupported as load_model, with the file and the key or the
// tensors.
Result<std::unique_ptr<Model>> load_dense_decoder(const DenseFamily& family,
                                                  const Checkpoint& checkpoint,
                                                  const LoadOptions& options);

}  // namespace paceline

// The families that registry.cpp knows; each is defined in a file of its name.
#pragma once

#include <memory>

#include "base/result.h"
#include "models/dense_config.h"
#include "models/registry.h"

namespace paceline {

using LoadFamily = Result<std::unique_ptr<Model>>(const Checkpoint&, const LoadOptions&);

LoadFamily load_gemma3;
LoadFamily load_llama;
LoadFamily load_mistral;
LoadFamily load_qwen2;
LoadFamily load_qwen3;

// How the settings of those that are dense decoders are read.
extern const DenseFamily kGemma3;
extern const DenseFamily kLlama;
extern const DenseFamily kMistral;
extern const DenseFamily kQwen2;
extern const DenseFamily kQwen3;

}  // namespace paceline

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
using DescribeFamily = DenseFamily();

DescribeFamily gemma3_family;
DescribeFamily llama_family;
DescribeFamily mistral_family;
DescribeFamily qwen2_family;
DescribeFamily qwen3_family;

}  // namespace paceline

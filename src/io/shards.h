// The weights of a folder: one safetensors file, or shards with their index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/writer.h"

namespace paceline {

// Up to `shard_bytes` of tensors: model.safetensors. More: model-00001-of-0000N.safetensors and so
// on, each with the next tensors that fit (one, if none does), and model.safetensors.index.json.
// Each file gets `metadata`. Errors and `fill` as write_safetensors; files already written stay for
// the caller to remove. Returns their names, the index last.
Result<std::vector<std::string>> write_shards(const std::filesystem::path& folder,
                                              std::span<const TensorSpec> tensors,
                                              const std::map<std::string, std::string>& metadata,
                                              int64_t shard_bytes, const FillRows& fill);

}  // namespace paceline

// A checkpoint as a Hugging Face folder in bfloat16, which this program and transformers read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace paceline {

struct ExportOptions {
  std::filesystem::path out;
  int64_t shard_bytes = 5'000'000'000;
  int threads = 1;
  std::function<void(double share)> progress = {};
  std::function<bool()> stop = {};  // looked at between pieces
};

struct ExportSummary {
  std::vector<std::string> files;  // paths
  std::string family;
  std::string model_sha256;  // of what was exported
  int64_t parameters = 0;
  std::vector<std::string> left_out;  // tensors that no part of the model reads
};

// A GGUF model of any family that runs, or a folder with safetensors of another type. Matrices are
// dequantised and rounded to bf16 as `--weights bf16` does at load; vectors (norms, biases) become
// bf16 where that changes no value, as in every model that was released in bf16, and stay float32
// where it would. So the folder computes, bit for bit, what the source does with `--weights bf16`;
// but for Gemma, whose folders scale embeddings in their own type (docs/formats.md).
// A head that a folder holds comes along, with what its file says of it.
// Tokenizer, chat template and end ids are what the GGUF file says of them; a folder's files are
// copied. The tokenizer written is compared with the source's before the folder takes its place.
// The folder appears whole or not at all, and must be new or empty.
Result<ExportSummary> export_model(const std::filesystem::path& model,
                                   const ExportOptions& options);

}  // namespace paceline

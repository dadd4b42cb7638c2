// The files of a checkpoint with random weights.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/synth_shapes.h"
#include "base/result.h"
#include "io/checkpoint.h"

namespace paceline::apps {

struct SynthJob {
  SynthShape shape;
  DType type = DType::BF16;  // of the matrices
  std::filesystem::path folder;
  uint64_t seed = 1;
  int threads = 1;
  std::function<void(double share)> progress;
  std::function<bool()> stop;  // looked at between pieces
};

// F32 and BF16: config.json, generation_config.json, tokenizer files and model.safetensors. Others:
// one .gguf file, norms in F32, the embedding and an output matrix of its own in Q8_0. The same
// seed gives the same values before rounding, whatever the type. BadUsage for a folder that is not
// empty; an error leaves nothing behind. Returns the paths of the files.
Result<std::vector<std::string>> write_synth(const SynthJob& job);

}  // namespace paceline::apps

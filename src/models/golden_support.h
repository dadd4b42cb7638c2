// Tiny checkpoints with known logits, and readers of texts, for tests of this box.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/mapped_file.h"
#include "io/safetensors_reader.h"
#include "models/registry.h"

namespace paceline {

namespace fs = std::filesystem;

// Folders FAMILY/VARIANT.
inline fs::path goldens() { return fs::path(PACELINE_SOURCE_DIR) / "tests/golden"; }

// What transformers computes in float32 for a tiny checkpoint (tools/oracle/make_dense_golden.py).
struct Golden {
  std::vector<TokenId> ids;
  std::vector<int> positions;
  std::vector<float> logits;  // (positions, vocab)
};

inline Golden read_golden(const fs::path& folder) {
  std::ifstream file(folder / "ids.json");
  const auto json = nlohmann::json::parse(file);
  Golden golden{json["ids"], json["positions"], {}};
  const auto mapped = MappedFile::open(folder / "logits.safetensors");
  const auto contents = read_safetensors(mapped->bytes(), "logits.safetensors");
  const Tensor& logits = contents->tensors.at(0);
  golden.logits.resize(logits.elements());
  dequantize(logits, 0, golden.logits);
  return golden;
}

inline std::unique_ptr<Model> load_golden(const fs::path& folder, const LoadOptions& options) {
  const bool gguf = fs::exists(folder / "model.gguf");
  auto checkpoint = Checkpoint::open(gguf ? folder / "model.gguf" : folder);
  if (!checkpoint) {
    ADD_FAILURE() << checkpoint.error().message;
    return nullptr;
  }
  auto model = load_model(*checkpoint, options);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return std::move(*model);
}

// Logits of every position, the ids read in blocks of `chunk` rows.
inline std::vector<float> logits_of(const Model& model, std::span<const TokenId> ids, int chunk,
                                    CacheType cache) {
  const int n = static_cast<int>(ids.size());
  auto state = model.make_state(n, cache);
  auto workspace = model.make_workspace(chunk, chunk);
  std::vector<float> all;
  Block block(chunk);
  for (int begin = 0; begin < n; begin += chunk) {
    block.reset(begin);
    for (int i = begin; i < std::min(begin + chunk, n); ++i) block.add(ids[i]);
    const TrunkOut out = model.forward(block, **state, LogitRows::All, **workspace);
    all.insert(all.end(), out.logits.data,
               out.logits.data + static_cast<int64_t>(out.logits.rows) * out.logits.cols);
    (*state)->commit(block.rows());
  }
  return all;
}

inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

}  // namespace paceline

// Heads with random values, for tests of whatever drafts with them.
#pragma once

#include <algorithm>
#include <random>

#include "base/check.h"
#include "models/draft_head.h"

namespace paceline {

// Norms around one, all else around zero and as large as `scale` says.
inline HeadTensors random_head(const Model& trunk, HeadConfig config, uint32_t seed,
                               float scale = 0.2f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  HeadTensors head;
  head.config = std::move(config);
  for (const HeadShape& shape : trunk.head_shapes(head.config.modules)) {
    HeadTensor& tensor = head.tensors[shape.name];
    tensor.shape = shape.shape;
    int64_t n = 1;
    for (const int64_t size : shape.shape) n *= size;
    const bool is_norm = shape.name.find("norm") != std::string::npos;
    for (int64_t i = 0; i < n; ++i) {
      tensor.values.push_back(is_norm ? 1 + 0.3f * normal(random) : scale * normal(random));
    }
  }
  return head;
}

inline HeadTensors zero_head(const Model& trunk, HeadConfig config) {
  HeadTensors head = random_head(trunk, std::move(config), 1);
  for (auto& [_, tensor] : head.tensors) std::fill(tensor.values.begin(), tensor.values.end(), 0);
  return head;
}

inline std::unique_ptr<DraftHead> made_head(const Model& trunk, const HeadTensors& tensors) {
  auto head = trunk.make_head(tensors);
  check(head.has_value(), "a test's head fits its trunk");
  return std::move(*head);
}

}  // namespace paceline

// Whether a trained head takes the place of another.
#pragma once

#include <filesystem>
#include <string>

#include "apps/json_file.h"
#include "base/result.h"
#include "engine/engine.h"
#include "models/head_file.h"
#include "train/data.h"

namespace paceline::apps {

struct PromotionResult {
  bool promoted = false;
  std::string reason;
  Json json;
};

// Both heads walked over the held-out answers (30,000 tokens of them at most) at so many drafts a
// round, judged by measure/promotion.h. after: the trained head's file.
Result<PromotionResult> judge_head(const Engine& engine, const train::TrainingData& data,
                                   const HeadTensors& before, const std::filesystem::path& after,
                                   int depth, uint64_t seed);

// What stands at `to` is replaced.
Result<void> move_file(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace paceline::apps

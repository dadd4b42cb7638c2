// Whether a trained head takes the place of another.
#pragma once

#include <filesystem>
#include <optional>
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

// What a file held before it is written anew.
class KeptFile {
 public:
  static Result<KeptFile> of(const std::filesystem::path& file);
  // The file is as it was; what stands there now goes to `aside`.
  Result<void> restore(const std::filesystem::path& aside) const;

 private:
  std::filesystem::path file_;
  std::optional<std::string> bytes_;
};

}  // namespace paceline::apps

// Whether a trained head takes the place of another.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "apps/promotion_report.h"
#include "base/result.h"
#include "engine/engine.h"
#include "models/head_file.h"
#include "train/data.h"
#include "train/evaluate.h"

namespace paceline::apps {

// Over what, and with how many drafts a round, both heads are walked: the held-out answers, 30,000
// tokens of them at most.
train::EvaluationPlan plan_promotion(const Engine& engine, const train::TrainingData& data,
                                     int depth);
// The same over all streams of a dump of its own. Refused: one that is not of this engine, that a
// head cannot walk, or that has a stream of the training dump. name: of the dump, for the error.
Result<train::EvaluationPlan> plan_promotion(const Engine& engine, const Dump& training,
                                             const Dump& judge, const std::string& name,
                                             std::span<const HeadConfig* const> heads, int depth);

// after: the trained head's file.
Result<Verdict> judge_head(const Engine& engine, const train::EvaluationPlan& plan,
                           const HeadTensors& before, const std::filesystem::path& after,
                           uint64_t seed);

// What stands at `to` is replaced.
Result<void> move_file(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace paceline::apps

#include "apps/train_promotion.h"

#include <system_error>

#include "fmt/format.h"
#include "measure/promotion.h"
#include "train/evaluate.h"

namespace paceline::apps {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTokens = 30'000;

std::vector<measure::PromptRounds> rounds_of(const train::EvaluationPlan& plan,
                                             const train::Evaluation& evaluation) {
  std::vector<measure::PromptRounds> prompts;
  for (size_t i = 0; i < plan.streams.size(); ++i) {
    const DumpStream stream = plan.dump->stream(plan.streams[i]);
    prompts.push_back({.id = std::string(stream.id),
                       .category = std::string(stream.category),
                       .rounds = evaluation.by_stream[i].rounds,
                       .tokens = evaluation.by_stream[i].round_tokens});
  }
  return prompts;
}

Json change_json(const measure::HeadChange& change) {
  return {{"category", change.category},
          {"prompts", change.prompts},
          {"tokens_per_round_before", change.before},
          {"tokens_per_round_after", change.after},
          {"interval", {change.change.low, change.change.high}}};
}

}  // namespace

Result<PromotionResult> judge_head(const Engine& engine, const train::TrainingData& data,
                                   const HeadTensors& before, const fs::path& after, int depth,
                                   uint64_t seed) {
  const auto plan = train::plan_evaluation(data, kTokens, depth, engine.cache_type());
  const auto trained = read_head(after);
  if (!trained) return trained.error();
  const auto old_rounds = train::evaluate(engine.model(), before, plan);
  if (!old_rounds) return old_rounds.error();
  const auto new_rounds = train::evaluate(engine.model(), *trained, plan);
  if (!new_rounds) return new_rounds.error();
  const auto judged =
      measure::compare_heads(rounds_of(plan, *old_rounds), rounds_of(plan, *new_rounds), seed);
  if (!judged) return judged.error();
  PromotionResult result{.promoted = judged->promote, .reason = judged->reason, .json = {}};
  result.json = {{"promoted", judged->promote},
                 {"reason", judged->reason},
                 {"all", change_json(judged->all)},
                 {"categories", Json::array()}};
  for (const measure::HeadChange& change : judged->categories)
    result.json["categories"].push_back(change_json(change));
  return result;
}

Result<void> move_file(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  if (!failed) return {};
  return Error{ErrorCode::Io, fmt::format("{}: cannot be moved to {}: {}", from.string(),
                                          to.string(), failed.message())};
}

}  // namespace paceline::apps

#include "apps/train_promotion.h"

#include <system_error>

#include "apps/dump_flags.h"
#include "fmt/format.h"
#include "spec/dump_text.h"

namespace paceline::apps {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTokens = 30'000;

HeadRounds rounds_of(const train::EvaluationPlan& plan, const train::Evaluation& evaluation) {
  HeadRounds rounds;
  for (size_t i = 0; i < plan.streams.size(); ++i)
    rounds.add(plan.dump->stream(plan.streams[i]), evaluation.by_stream[i]);
  return rounds;
}

}  // namespace

train::EvaluationPlan plan_promotion(const Engine& engine, const train::TrainingData& data,
                                     int depth) {
  return train::plan_evaluation(data, kTokens, depth, engine.cache_type());
}

Result<train::EvaluationPlan> plan_promotion(const Engine& engine, const Dump& training,
                                             const Dump& judge, const std::string& name,
                                             std::span<const HeadConfig* const> heads, int depth) {
  if (auto ok = check_dump_is_of(engine, judge.header(), name); !ok) return ok.error();
  const auto refused = [&](const Error& error) {
    return Error{error.code, fmt::format("--judge {}: {}", name, error.message)};
  };
  for (const HeadConfig* head : heads)
    if (auto ok = check_tap(judge.header(), *head); !ok) return refused(ok.error());
  auto plan = train::plan_judgement(training, judge, depth, engine.cache_type());
  if (!plan) return refused(plan.error());
  return plan;
}

Result<Verdict> judge_head(const Engine& engine, const train::EvaluationPlan& plan,
                           const HeadTensors& before, const fs::path& after, uint64_t seed) {
  const auto trained = read_head(after);
  if (!trained) return trained.error();
  const auto old_rounds = train::evaluate(engine.model(), before, plan);
  if (!old_rounds) return old_rounds.error();
  const auto new_rounds = train::evaluate(engine.model(), *trained, plan);
  if (!new_rounds) return new_rounds.error();
  return verdict_of(rounds_of(plan, *old_rounds), rounds_of(plan, *new_rounds), seed);
}

Result<void> move_file(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  if (!failed) return {};
  return Error{ErrorCode::Io, fmt::format("{}: cannot be moved to {}: {}", from.string(),
                                          to.string(), failed.message())};
}

}  // namespace paceline::apps

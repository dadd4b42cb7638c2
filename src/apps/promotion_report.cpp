#include "apps/promotion_report.h"

#include "fmt/format.h"

namespace paceline::apps {
namespace {

Json change_json(const measure::HeadChange& change) {
  return {{"category", change.category},
          {"prompts", change.prompts},
          {"tokens_per_round_before", change.before},
          {"tokens_per_round_after", change.after},
          {"interval", {change.change.low, change.change.high}}};
}

std::string line_of(const std::string& name, const measure::HeadChange& change) {
  return fmt::format(
      "{:16}{:8} prompts{:8.3f} to {:.3f} tokens/round, the change in [{:.3f}, "
      "{:.3f}]\n",
      name.empty() ? "without name" : name, change.prompts, change.before, change.after,
      change.change.low, change.change.high);
}

}  // namespace

void HeadRounds::add(const DumpStream& stream, const RoundCounts& counts) {
  all.add(counts);
  prompts.push_back({.id = std::string(stream.id),
                     .category = std::string(stream.category),
                     .rounds = counts.rounds,
                     .tokens = counts.round_tokens});
}

Result<Verdict> verdict_of(const HeadRounds& before, const HeadRounds& after, uint64_t seed) {
  const auto judged = measure::compare_heads(before.prompts, after.prompts, seed);
  if (!judged) return judged.error();
  Verdict verdict{.promoted = judged->promote, .sentence = {}, .table = {}, .json = {}};
  verdict.sentence =
      fmt::format("{}: {}; E {:.3f} to {:.3f}", judged->promote ? "promoted" : "not promoted",
                  judged->reason, before.all.expected(), after.all.expected());
  verdict.json = {{"promoted", judged->promote},
                  {"reason", judged->reason},
                  {"expected_before", before.all.expected()},
                  {"expected_after", after.all.expected()},
                  {"all", change_json(judged->all)},
                  {"categories", Json::array()}};
  for (const measure::HeadChange& change : judged->categories) {
    verdict.json["categories"].push_back(change_json(change));
    verdict.table += line_of(change.category, change);
  }
  verdict.table += line_of("all", judged->all);
  return verdict;
}

}  // namespace paceline::apps

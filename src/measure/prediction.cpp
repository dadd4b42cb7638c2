#include "measure/prediction.h"

#include "base/check.h"

namespace paceline::measure {

double predicted_seconds(const GenerationStats& run, const GenerationStats& plain,
                         const PassCosts& passes, double draft_seconds) {
  check(plain.rounds > 0, "a prediction stands on plain rounds");
  double passes_of_one_row = 0;
  for (size_t n = 0; n < run.rounds_by_drafted.size(); ++n)
    if (run.rounds_by_drafted[n] > 0)
      passes_of_one_row +=
          static_cast<double>(run.rounds_by_drafted[n]) * passes.of(static_cast<int>(n) + 1);
  const auto plain_rounds = static_cast<double>(plain.rounds);
  const double plain_pass = plain.verify_seconds / plain_rounds;
  const double plain_rest = (plain.draft_seconds + plain.other_seconds) / plain_rounds;
  return passes_of_one_row * plain_pass + static_cast<double>(run.proposed) * draft_seconds +
         static_cast<double>(run.round_tokens) * plain_rest;
}

}  // namespace paceline::measure

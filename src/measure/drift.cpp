#include "measure/drift.h"

#include <algorithm>

#include "fmt/format.h"
#include "measure/cycle.h"

namespace paceline::measure {
namespace {

bool wrote_nothing(const std::vector<IdStream>& streams) {
  return std::all_of(streams.begin(), streams.end(),
                     [](const IdStream& stream) { return stream.ids.empty(); });
}

PromptDrift compare(const IdStream& a, const IdStream& b, int prompt, Drift& drift) {
  PromptDrift result;
  result.length_a = static_cast<int>(a.ids.size());
  result.length_b = static_cast<int>(b.ids.size());
  result.cyclic_a = ends_in_cycle(a.ids);
  result.cyclic_b = ends_in_cycle(b.ids);
  const int common = std::min(result.length_a, result.length_b);
  for (int i = 0; i < common; ++i) {
    if (a.ids[i] == b.ids[i]) continue;
    ++drift.differing;
    if (!result.first_flip) result.first_flip = Flip{prompt, i, a.ids[i], b.ids[i]};
  }
  drift.compared += common;
  if (result.first_flip)
    result.outcome = DriftOutcome::Different;
  else if (result.length_a != result.length_b)
    result.outcome = DriftOutcome::SamePrefix;
  return result;
}

}  // namespace

const char* to_string(DriftOutcome outcome) {
  constexpr const char* kNames[] = {"same", "same_prefix", "different"};
  return kNames[static_cast<int>(outcome)];
}

Result<Drift> compare_streams(const std::vector<IdStream>& a, const std::vector<IdStream>& b) {
  if (wrote_nothing(a) || wrote_nothing(b))
    return Error{ErrorCode::BadUsage,
                 fmt::format("the {} run wrote no token, so there is nothing to compare",
                             wrote_nothing(a) ? "first" : "second")};
  if (a.size() != b.size())
    return Error{ErrorCode::BadUsage,
                 fmt::format("the runs have {} and {} prompts; wanted the same ones in both",
                             a.size(), b.size())};
  Drift drift;
  drift.prompts.reserve(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].prompt != b[i].prompt)
      return Error{
          ErrorCode::BadUsage,
          fmt::format("prompt {} of the runs differs; wanted the same ones in both", i + 1)};
    drift.prompts.push_back(compare(a[i], b[i], static_cast<int>(i), drift));
    const PromptDrift& prompt = drift.prompts.back();
    drift.outcome = std::max(drift.outcome, prompt.outcome);
    if (prompt.first_flip &&
        (!drift.first_flip || prompt.first_flip->position < drift.first_flip->position))
      drift.first_flip = prompt.first_flip;
  }
  return drift;
}

}  // namespace paceline::measure

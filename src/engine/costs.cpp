#include "engine/costs.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "engine/passes.h"
#include "spec/head_drafter.h"
#include "spec/lookup.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

// The widths that are timed for the policy; r is close to straight between them.
constexpr int kWidths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One draft of the lookup, the text included that it reads between rounds.
double draft_seconds() {
  constexpr int kTokens = 2048;
  LookupDrafter drafter;
  drafter.begin({}, kTokens);
  std::vector<Draft> drafts(1);
  const auto start = Clock::now();
  for (int i = 0; i < kTokens; ++i) {
    const TokenId token = i * i % 97;
    drafter.observe({&token, 1}, {});
    drafter.draft(drafts);
  }
  return seconds_since(start) / kTokens;
}

// Straight lines between measured widths, the last one prolonged. A wider pass is not cheaper:
// where it seems so it is noise.
CostModel interpolate(const PassTimes& times) {
  const std::vector<int>& widths = times.widths;
  std::vector<double> seconds;
  for (const auto& values : times.seconds) seconds.push_back(std::max(1e-9, median(values)));
  CostModel costs = worst_costs();
  for (int m = 2; m <= CostModel::kMaxRows && widths.size() > 1; ++m) {
    size_t right = 1;
    while (right + 1 < widths.size() && widths[right] < m) ++right;
    const double slope =
        (seconds[right] - seconds[right - 1]) / (widths[right] - widths[right - 1]);
    const double at = seconds[right - 1] + slope * (m - widths[right - 1]);
    costs.verify[m] = std::max(costs.verify[m - 1], at / seconds[0]);
  }
  costs.draft = draft_seconds() / seconds[0];
  return costs;
}

}  // namespace

CostModel worst_costs() {
  CostModel costs;
  for (int m = 1; m <= CostModel::kMaxRows; ++m) costs.verify[m] = m;
  costs.head = 1;
  return costs;
}

Result<PassTimes> time_passes(const Model& model, int context, CacheType cache,
                              const PassSweeps& sweeps) {
  PassTimes times;
  for (const int width : sweeps.widths) {
    if (width < context) times.widths.push_back(width);
  }
  if (times.widths.empty()) {
    return Error{ErrorCode::TooLarge, "the context is too short to measure passes in"};
  }
  auto passes = Passes::make(model, context, cache, sweeps.position, times.widths.back(),
                             sweeps.prefill_seconds);
  if (!passes) return passes.error();
  times.position = passes->position();

  times.seconds.resize(times.widths.size());
  const auto start = Clock::now();
  for (int sweep = 0; sweep <= sweeps.most; ++sweep) {
    if (sweep > sweeps.least && seconds_since(start) > sweeps.seconds) break;
    for (size_t turn = 0; turn < times.widths.size(); ++turn) {
      if (sweeps.stop && sweeps.stop()) {
        if (sweep > 1) return times;
        return Error{ErrorCode::Interrupted, "interrupted"};
      }
      const size_t i = sweep % 2 == 0 ? turn : times.widths.size() - 1 - turn;
      const double seconds = passes->seconds(times.widths[i]);
      if (sweep > 0) times.seconds[i].push_back(seconds);  // the first sweep warms up
    }
  }
  return times;
}

Result<CostModel> measure_costs(const Model& model, int context, CacheType cache) {
  const auto times = time_passes(model, context, cache, {.widths = kWidths});
  if (!times) return times.error();
  return interpolate(*times);
}

Result<double> measure_head(const Model& model, const DraftHead& head, int context,
                            CacheType cache) {
  constexpr int kRounds = 9;
  constexpr int kRows = 2;    // of the text, a round
  constexpr int kDrafts = 4;  // a round
  const int before = std::min(256, context - kRows * kRounds - kDrafts);
  if (before < 1) {
    return Error{ErrorCode::TooLarge, "the context is too short to measure a draft head in"};
  }
  auto passes = Passes::make(model, context, cache, before, 1, /*prefill_seconds=*/0.1);
  if (!passes) return passes.error();
  auto workspace = head.make_workspace(HeadDrafter::kWorkspaceRows);
  if (!workspace) return workspace.error();
  HeadDrafter drafter(head, **workspace, cache);
  const int capacity = before + kRows * kRounds + kDrafts + 1;
  if (auto reserved = drafter.reserve(capacity); !reserved) return reserved.error();

  const int vocab_size = model.info().vocab_size;
  int at = 0;  // what a draft costs does not depend on the tokens
  const auto read_rows = [&](int n) {
    std::vector<TokenId> tokens;
    std::vector<float> hidden(static_cast<size_t>(n) * model.info().dim);
    for (int i = 0; i < n; ++i, ++at) tokens.push_back((at * 7919 + 13) % vocab_size);
    for (size_t i = 0; i < hidden.size(); ++i)
      hidden[i] = static_cast<float>((i * 31 + static_cast<size_t>(at)) % 17) - 8;
    drafter.observe(tokens, {hidden.data(), n, model.info().dim});
  };
  const TokenId first = 0;
  drafter.begin({&first, 1}, capacity);
  read_rows(before);
  std::vector<Draft> drafts(kDrafts);
  std::vector<double> passed, drafted;
  for (int round = 0; round < kRounds; ++round) {
    read_rows(kRows);
    passed.push_back(passes->seconds(1));
    const auto start = Clock::now();
    drafter.draft(drafts);
    drafted.push_back(seconds_since(start) / kDrafts);
  }
  return median(drafted) / std::max(1e-9, median(passed));
}

}  // namespace paceline

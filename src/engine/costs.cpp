#include "engine/costs.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "spec/lookup.h"
#include "spec/sequence.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPosition = 256;
constexpr int kLeastSweeps = 3;
constexpr int kMostSweeps = 15;
constexpr double kSeconds = 0.3;         // no further sweep is begun behind it
constexpr double kPrefillSeconds = 0.2;  // a slow trunk is measured behind fewer positions
// The widths that are timed; r is close to straight between them.
constexpr int kWidths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Some token; what a pass costs does not depend on which.
TokenId some_token(int index, int vocab_size) {
  return static_cast<TokenId>(int64_t{index} * 7919 % vocab_size);
}

void fill(Block& block, int first_pos, int rows, int vocab_size) {
  block.reset(first_pos);
  for (int i = 0; i < rows; ++i) block.add(some_token(first_pos + i, vocab_size));
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Straight lines between measured widths, the last one prolonged. A wider pass is not cheaper:
// where it seems so it is noise.
CostModel interpolate(const std::vector<int>& widths, const std::vector<double>& seconds) {
  CostModel costs = worst_costs();
  for (int m = 2; m <= CostModel::kMaxRows && widths.size() > 1; ++m) {
    size_t right = 1;
    while (right + 1 < widths.size() && widths[right] < m) ++right;
    const double slope =
        (seconds[right] - seconds[right - 1]) / (widths[right] - widths[right - 1]);
    const double at = seconds[right - 1] + slope * (m - widths[right - 1]);
    costs.verify[m] = std::max(costs.verify[m - 1], at / seconds[0]);
  }
  return costs;
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

}  // namespace

CostModel worst_costs() {
  CostModel costs;
  for (int m = 1; m <= CostModel::kMaxRows; ++m) costs.verify[m] = m;
  return costs;
}

Result<CostModel> measure_costs(const Model& model, int context, CacheType cache) {
  const int most_rows = std::min(CostModel::kMaxRows, context);
  const int position = std::min(kPosition, context - most_rows);
  const int vocab_size = model.info().vocab_size;
  auto state = model.make_state(position + most_rows, cache);
  if (!state) return state.error();
  const int block_rows = std::max(kPrefillRows, most_rows);
  auto workspace = model.make_workspace(block_rows, most_rows);
  if (!workspace) return workspace.error();
  Block block(block_rows);

  const auto prefill_start = Clock::now();
  while ((*state)->length() < position && seconds_since(prefill_start) < kPrefillSeconds) {
    const int at = (*state)->length();
    fill(block, at, std::min(kPrefillRows, position - at), vocab_size);
    model.forward(block, **state, LogitRows::None, **workspace);
    (*state)->commit(block.rows());
  }

  std::vector<int> widths;
  for (const int width : kWidths) {
    if (width <= most_rows) widths.push_back(width);
  }
  std::vector<std::vector<double>> samples(widths.size());
  const auto start = Clock::now();
  for (int sweep = 0; sweep <= kMostSweeps; ++sweep) {
    if (sweep > kLeastSweeps && seconds_since(start) > kSeconds) break;
    for (size_t turn = 0; turn < widths.size(); ++turn) {
      const size_t i = sweep % 2 == 0 ? turn : widths.size() - 1 - turn;
      fill(block, (*state)->length(), widths[i], vocab_size);
      const auto pass_start = Clock::now();
      model.forward(block, **state, LogitRows::All, **workspace);
      const double seconds = seconds_since(pass_start);
      (*state)->commit(0);
      if (sweep > 0) samples[i].push_back(seconds);
    }
  }
  std::vector<double> seconds;
  seconds.reserve(samples.size());
  for (auto& values : samples) seconds.push_back(std::max(1e-9, median(values)));
  CostModel costs = interpolate(widths, seconds);
  costs.draft = draft_seconds() / seconds[0];
  return costs;
}

}  // namespace paceline

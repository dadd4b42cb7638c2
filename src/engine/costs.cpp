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

// The widths that are timed for the policy, those first that say most; r is close to straight
// between them.
constexpr int kWidths[] = {5, 9, 17, 3, 32, 2, 4, 7, 12, 6, 8, 16, 24};

constexpr double kLeastSeconds = 1e-9;  // what a clock shows of a pass, at least
constexpr double kLeastSlope = 0.002;   // of r(m), a row

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of an even number of values the mean of the two in the middle.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
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

// The closest values that never fall: pool adjacent violators (Ayer et al. 1955). A wider pass is
// not cheaper; where it seems so it is noise.
void pool_falls(std::vector<double>& values) {
  std::vector<std::pair<double, size_t>> pools;  // mean and number
  for (const double value : values) {
    pools.emplace_back(value, 1);
    while (pools.size() > 1 && pools[pools.size() - 2].first > pools.back().first) {
      const auto [mean, n] = pools.back();
      pools.pop_back();
      auto& pool = pools.back();
      const size_t both = pool.second + n;
      pool.first += (mean - pool.first) * static_cast<double>(n) / static_cast<double>(both);
      pool.second = both;
    }
  }
  values.clear();
  for (const auto& [mean, n] : pools) values.insert(values.end(), n, mean);
}

// Straight lines between measured widths, the last one prolonged.
CostModel interpolate(const PassTimes& times) {
  std::vector<std::pair<int, double>> measured = {{1, 1.0}};
  for (size_t i = 0; i < times.widths.size(); ++i)
    measured.emplace_back(times.widths[i], median(times.ratios[i]));
  std::ranges::sort(measured);
  std::vector<double> ratios;
  ratios.reserve(measured.size());
  for (const auto& point : measured) ratios.push_back(point.second);
  pool_falls(ratios);

  CostModel costs = worst_costs();
  for (int m = 2; m <= CostModel::kMaxRows; ++m) {
    size_t right = 1;
    while (right + 1 < measured.size() && measured[right].first < m) ++right;
    const auto [to, there] = std::pair(measured[right].first, ratios[right]);
    const auto [from, here] = std::pair(measured[right - 1].first, ratios[right - 1]);
    double slope = (there - here) / (to - from);
    // Behind the last width no flatter than up to it: where the last two were pooled it was noise.
    if (m > to) slope = std::max(slope, (there - 1) / (to - 1));
    // A row costs something, or no pass to come could show what.
    costs.verify[m] = std::max(there + slope * (m - to), 1 + kLeastSlope * (m - 1));
  }
  costs.draft = draft_seconds() / std::max(kLeastSeconds, median(times.one_row_seconds));
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
  const int widest = std::ranges::max(times.widths);
  auto passes =
      Passes::make(model, context, cache, sweeps.position, widest, sweeps.prefill_seconds);
  if (!passes) return passes.error();
  times.position = passes->position();

  const auto one_row = [&] {
    const double seconds = std::max(kLeastSeconds, passes->seconds(1));
    times.one_row_seconds.push_back(seconds);
    return seconds;
  };
  passes->seconds(widest);  // warms up
  passes->seconds(1);
  times.ratios.resize(times.widths.size());
  const auto start = Clock::now();
  double before = one_row();
  for (int sweep = 0; sweep < sweeps.most; ++sweep) {
    if (sweep > 0 && seconds_since(start) > sweeps.seconds) break;
    for (size_t turn = 0; turn < times.widths.size(); ++turn) {
      if (sweeps.stop && sweeps.stop()) {
        if (sweep > 0) return times;
        return Error{ErrorCode::Interrupted, "interrupted"};
      }
      if (sweep == 0 && turn >= sweeps.fewest && seconds_since(start) > sweeps.seconds / 3) {
        times.widths.resize(turn);
        times.ratios.resize(turn);
        break;
      }
      const size_t i = sweep % 2 == 0 ? turn : times.widths.size() - 1 - turn;
      const double seconds = passes->seconds(times.widths[i]);
      const double after = one_row();
      times.ratios[i].push_back(2 * seconds / (before + after));
      before = after;
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
  return median(drafted) / std::max(kLeastSeconds, median(passed));
}

}  // namespace paceline

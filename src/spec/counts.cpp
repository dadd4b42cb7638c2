#include "spec/counts.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {
namespace {

void add_to(std::vector<int64_t>& sums, const std::vector<int64_t>& counts) {
  if (sums.size() < counts.size()) sums.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
}

}  // namespace

void RoundCounts::begin(int depth) {
  *this = RoundCounts();
  depth_limit = depth;
  drafted_by_depth.assign(depth, 0);
  accepted_by_depth.assign(depth, 0);
  drafted_by_source.assign(kDraftSources, 0);
  accepted_by_source.assign(kDraftSources, 0);
}

void RoundCounts::add(const RoundStats& round, std::span<const Draft> drafts) {
  check(round.n_drafted <= depth_limit, "a round drafts to the depth that is counted");
  ++rounds;
  round_tokens += round.n_emitted;
  proposed += round.n_proposed;
  for (int d = 0; d < round.n_drafted; ++d) {
    ++drafted_by_depth[d];
    ++drafted_by_source[static_cast<int>(drafts[d].source)];
  }
  for (int d = 0; d < round.n_accepted; ++d) {
    ++accepted_by_depth[d];
    ++accepted_by_source[static_cast<int>(drafts[d].source)];
  }
}

void RoundCounts::add(const RoundCounts& other) {
  depth_limit = std::max(depth_limit, other.depth_limit);
  rounds += other.rounds;
  round_tokens += other.round_tokens;
  proposed += other.proposed;
  add_to(drafted_by_depth, other.drafted_by_depth);
  add_to(accepted_by_depth, other.accepted_by_depth);
  add_to(drafted_by_source, other.drafted_by_source);
  add_to(accepted_by_source, other.accepted_by_source);
}

}  // namespace paceline

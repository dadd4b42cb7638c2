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
  rounds_by_drafted.assign(kMostNodes + 1, 0);
  drafted_by_depth.assign(depth, 0);
  accepted_by_depth.assign(depth, 0);
  drafted_by_source.assign(kDraftSources, 0);
  accepted_by_source.assign(kDraftSources, 0);
  tested_by_evidence.assign(kEvidenceKinds, 0);
  stood_by_evidence.assign(kEvidenceKinds, 0);
}

void RoundCounts::add(const RoundStats& round, std::span<const Draft> drafts) {
  check(round.n_drafted <= depth_limit, "a round drafts to the depth that is counted");
  ++rounds;
  round_tokens += round.n_emitted;
  proposed += round.n_proposed;
  ++rounds_by_drafted[drafts.size()];
  for (int d = 0; d < round.n_drafted; ++d) ++drafted_by_depth[d];
  const auto stood = [&](int i) { return std::ranges::count(round.standing(), i) > 0; };
  for (int i = 0; i < static_cast<int>(drafts.size()); ++i) {
    if (depth_of(drafts, i) > round.n_drafted) continue;
    const Draft& draft = drafts[i];
    ++drafted;
    ++drafted_by_source[static_cast<int>(draft.source)];
    const int parent = parent_of(drafts, i);
    if (parent != kPending && !stood(parent)) continue;
    const int kind = evidence_kind(draft);
    ++tested_by_evidence[kind];
    if (stood(i)) ++stood_by_evidence[kind];
  }
  for (int d = 0; d < round.n_accepted; ++d) {
    ++accepted_by_depth[d];
    ++accepted_by_source[static_cast<int>(drafts[round.path[d]].source)];
  }
}

void RoundCounts::add(const RoundCounts& other) {
  depth_limit = std::max(depth_limit, other.depth_limit);
  rounds += other.rounds;
  round_tokens += other.round_tokens;
  proposed += other.proposed;
  drafted += other.drafted;
  add_to(rounds_by_drafted, other.rounds_by_drafted);
  add_to(drafted_by_depth, other.drafted_by_depth);
  add_to(accepted_by_depth, other.accepted_by_depth);
  add_to(drafted_by_source, other.drafted_by_source);
  add_to(accepted_by_source, other.accepted_by_source);
  add_to(tested_by_evidence, other.tested_by_evidence);
  add_to(stood_by_evidence, other.stood_by_evidence);
}

}  // namespace paceline

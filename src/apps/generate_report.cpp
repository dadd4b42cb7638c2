#include "apps/generate_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "apps/gap_log.h"
#include "apps/say.h"
#include "apps/spec_flags.h"

namespace paceline::apps {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool same_logprob(const TokenLogprob& a, const TokenLogprob& b) {
  if (a.id != b.id || !same_bits(a.logprob, b.logprob) || a.top.size() != b.top.size())
    return false;
  for (size_t i = 0; i < a.top.size(); ++i) {
    if (a.top[i].first != b.top[i].first || !same_bits(a.top[i].second, b.top[i].second)) {
      return false;
    }
  }
  return true;
}

bool same_arm(const ArmResult& a, const ArmResult& b) {
  const bool cut =
      a.finish_reason == FinishReason::Interrupted || b.finish_reason == FinishReason::Interrupted;
  if (!cut && (a.token_ids.size() != b.token_ids.size() || a.text != b.text ||
               a.finish_reason != b.finish_reason)) {
    return false;
  }
  const size_t n = std::min(a.token_ids.size(), b.token_ids.size());
  if (!std::equal(a.token_ids.begin(), a.token_ids.begin() + static_cast<ptrdiff_t>(n),
                  b.token_ids.begin())) {
    return false;
  }
  const size_t n_logprobs = std::min(a.logprobs.size(), b.logprobs.size());
  for (size_t i = 0; i < n_logprobs; ++i) {
    if (!same_logprob(a.logprobs[i], b.logprobs[i])) return false;
  }
  return true;
}

Json logprob_json(const TokenLogprob& token) {
  Json top = Json::array();
  for (const auto& [id, logprob] : token.top) top.push_back(Json::array({id, logprob}));
  return Json{{"id", token.id}, {"logprob", token.logprob}, {"top", std::move(top)}};
}

Json arm_json(const ArmResult& arm) {
  const GenerationStats& stats = arm.stats;
  Json logprobs = Json::array();
  for (const TokenLogprob& token : arm.logprobs) logprobs.push_back(logprob_json(token));
  Json gaps;
  if (!arm.gaps.empty()) {
    measure::GapHistogram histogram;
    for (const TokenGap& gap : arm.gaps) histogram.add(gap.gap);
    gaps = gap_histogram_json(histogram);
  }
  return Json{{"depth", depth_json(arm.shape)},
              {"tree", tree_json(arm.shape)},
              {"drafter", arm.drafter},
              {"token_ids", arm.token_ids},
              {"draft_depths", arm.draft_depths},
              {"text", arm.text},
              {"finish_reason", to_string(arm.finish_reason)},
              {"tokens_per_second", stats.tokens_per_second()},
              {"rounds", stats.rounds},
              {"tokens_per_round", stats.tokens_per_round()},
              {"proposed", stats.proposed},
              {"drafted", stats.drafted},
              {"rows", stats.drafted + stats.rounds},
              {"drafted_by_depth", stats.drafted_by_depth},
              {"accepted_by_depth", stats.accepted_by_depth},
              {"drafted_by_source", by_source_json(stats.drafted_by_source)},
              {"accepted_by_source", by_source_json(stats.accepted_by_source)},
              {"prompt_tokens", stats.prompt_tokens},
              {"prefill_seconds", stats.prefill_seconds},
              {"decode_seconds", stats.decode_seconds()},
              {"gap_histogram", std::move(gaps)},
              {"logprobs", std::move(logprobs)}};
}

// Sums over the prompts of one arm.
struct ArmTotal {
  std::string drafter;
  int64_t tokens = 0;
  int64_t round_tokens = 0;
  int64_t rounds = 0;
  double seconds = 0;
  std::vector<int64_t> accepted;  // by depth
  std::vector<int64_t> by_source;

  void add(const ArmResult& arm) {
    drafter = arm.drafter;
    tokens += static_cast<int64_t>(arm.token_ids.size());
    round_tokens += arm.stats.round_tokens;
    rounds += arm.stats.rounds;
    seconds += arm.stats.decode_seconds();
    const auto& by_depth = arm.stats.accepted_by_depth;
    if (accepted.size() < by_depth.size()) accepted.resize(by_depth.size());
    for (size_t d = 0; d < by_depth.size(); ++d) accepted[d] += by_depth[d];
    by_source.resize(kDraftSources);
    for (size_t i = 0; i < arm.stats.accepted_by_source.size(); ++i)
      by_source[i] += arm.stats.accepted_by_source[i];
  }
  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(round_tokens) / seconds : 0;
  }
};

// Share of rounds in which the drafts of depths 1 .. d all stood: "0.61 0.40 0.22".
std::string acceptance(const ArmTotal& total) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t d = 0; d < std::min(total.accepted.size(), kShown); ++d) {
    const double share = total.rounds > 0 ? static_cast<double>(total.accepted[d]) /
                                                static_cast<double>(total.rounds)
                                          : 0;
    text += fmt::format(" {:.2f}", share);
  }
  return text + (total.accepted.size() > kShown ? " ..." : "");
}

// "; by lookup 310, mtp 95, store 120", where more than one source had drafts that stood.
std::string sources(const ArmTotal& total) {
  std::string text;
  int n = 0;
  for (size_t i = 0; i < total.by_source.size(); ++i) {
    if (total.by_source[i] == 0) continue;
    text += fmt::format("{}{} {}", n++ == 0 ? "; by " : ", ",
                        to_string(static_cast<DraftSource>(i)), total.by_source[i]);
  }
  return n > 1 ? text : "";
}

}  // namespace

Json calibration_json(const RoundCounts& counts) {
  Json list = Json::array();
  for (int source = 0; source < kDraftSources; ++source) {
    for (const bool second : {false, true}) {
      for (int level = 0; level < kEvidenceLevels; ++level) {
        const auto of = static_cast<DraftSource>(source);
        const auto kind = static_cast<size_t>(evidence_kind(
            {.source = of, .evidence = static_cast<uint8_t>(level), .second = second}));
        if (kind >= counts.tested_by_evidence.size() || counts.tested_by_evidence[kind] == 0)
          continue;
        list.push_back(Json{{"source", to_string(of)},
                            {"first", !second},
                            {"level", level},
                            {"tested", counts.tested_by_evidence[kind]},
                            {"stood", counts.stood_by_evidence[kind]}});
      }
    }
  }
  return list;
}

Json by_source_json(const std::vector<int64_t>& counts) {
  Json json = Json::object();
  for (size_t i = 0; i < counts.size(); ++i)
    json[to_string(static_cast<DraftSource>(i))] = counts[i];
  return json;
}

bool PromptResult::identical() const {
  return std::all_of(arms.begin(), arms.end(),
                     [&](const ArmResult& arm) { return same_arm(arms.front(), arm); });
}

Json results_json(const std::vector<PromptResult>& results) {
  Json list = Json::array();
  for (const PromptResult& result : results) {
    Json arms = Json::array();
    for (const ArmResult& arm : result.arms) arms.push_back(arm_json(arm));
    list.push_back(Json{{"id", result.id},
                        {"prompt_ids", result.prompt_ids},
                        {"arms", std::move(arms)},
                        {"identical", result.identical()}});
  }
  return list;
}

void print_summary(const std::vector<PromptResult>& results, const std::vector<DraftShape>& arms) {
  std::vector<ArmTotal> totals(arms.size());
  int compared = 0;
  int different = 0;
  for (const PromptResult& result : results) {
    for (size_t i = 0; i < result.arms.size(); ++i) totals[i].add(result.arms[i]);
    if (result.arms.size() > 1) ++compared;
    if (!result.identical()) ++different;
  }
  size_t width = 4;
  for (const DraftShape& shape : arms) width = std::max(width, shape_name(shape).size());
  ++width;
  for (size_t i = 0; i < arms.size(); ++i) {
    const ArmTotal& total = totals[i];
    if (total.tokens == 0) continue;
    say(stderr, "depth {:<{}}{:<9}{:6} tokens {:8.1f} tokens/s", shape_name(arms[i]), width,
        total.drafter, total.tokens, total.tokens_per_second());
    if (total.rounds > 0) {
      say(stderr, "  {:.2f} tokens/round",
          static_cast<double>(total.round_tokens) / static_cast<double>(total.rounds));
    }
    if (i > 0 && totals[0].tokens_per_second() > 0) {
      say(stderr, "  {:.2f}x", total.tokens_per_second() / totals[0].tokens_per_second());
    }
    if (!total.accepted.empty()) say(stderr, "  accepted by depth{}", acceptance(total));
    say(stderr, "{}", sources(total));
    say(stderr, "\n");
  }
  if (compared > 0) {
    say(stderr, "identical: {}\n",
        different == 0 ? "yes" : fmt::format("no, {} of {} prompts differ", different, compared));
  }
}

}  // namespace paceline::apps

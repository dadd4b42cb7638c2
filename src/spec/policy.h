// How many drafts to ask for and to verify: the number that promises most tokens a second, none
// included.
#pragma once

#include <array>
#include <span>

#include "spec/draft_chances.h"

namespace paceline {

// What a pass costs on this machine, in passes of one row.
struct CostModel {
  static constexpr int kMaxRows = kMostNodes + 1;
  std::array<double, kMaxRows + 1> verify = {};  // verify[m] = r(m), m from 1; verify[1] = 1
  double draft = 0;  // one draft that is looked up, whether it is verified or not
  double head = 0;   // d: one step of a draft head
  double price(DraftSource source) const { return source == DraftSource::Mtp ? head : draft; }
};

// Expected tokens of a round over its cost, compared for every n:
//   (1 + sum over the first n drafts of the chance that a draft and all before it on its path
//    stand) / (r(n + 1) + the price of all drafts asked for)
// In a chain that is 1 + p_1 + p_1 p_2 + ... + p_1...p_n. The chance p of each draft is a running
// share of what was accepted: by source, evidence and depth for drafts that are there, by depth
// alone for those that are still to be asked for. A drafter that grows trees offers its drafts in
// the order in which they would be left out last, and what it would pay for is weighed as it comes.
//
// Two accounts, in passes of one row, hold what the estimates do not know.
// - Tries: where n promises most and n + 1 could pay if its drafts stood, the one more is tried now
//   and then, so that what became good is noticed. A small part of every round's cost goes into an
//   account that tries are paid from; one that stands pays back what its token is worth, so a
//   streak of them goes on at once, and after one that fell there is a rest.
// - The lead over plain decoding: tokens so far minus what they cost. A round that could bring it
//   below nothing is not run. So over a whole sequence speculation never costs more than kAllowance
//   and a few passes (kAdvance, the lead at the start), whatever the text does.
//
// One policy a sequence: it starts from the priors, so that of the runs before a run knows no more
// than what passes cost.
// A round calls ask or ask_paying, then choose and record, in this order.
class DepthPolicy : public GrowthRule {
 public:
  static constexpr double kAllowance = 0.012;
  static constexpr double kAdvance = 4;

  DepthPolicy();
  // How many drafts to ask the drafter for, 0 to limit, where they come from this source.
  int ask(int limit, const CostModel& costs, DraftSource source = DraftSource::Lookup);
  // The same for a drafter that grows: as many as there is room for, none of them deeper than
  // `depth`. What it wants to pay for in this round comes to pays().
  void begin_growth(int n, int depth, const CostModel& costs);
  bool pays(const Offer& offer) override;
  bool worth(double joint) const override { return joint >= least_joint_; }
  // How many of `drafts`, which the drafter offered, to verify: 0 to drafts.size().
  int choose(std::span<const Draft> drafts, const CostModel& costs);
  // The round's outcome: those of the drafts that stood, as they follow each other; others for the
  // same places fell, and about those behind them nothing was learnt, nor about any deeper than
  // `looked_at`, where the text ended.
  void record(std::span<const Draft> verified, std::span<const uint8_t> standing, int looked_at);
  // The present estimate that a draft at `depth` stands, given that those before it stand.
  double chance(const Draft& draft, int depth) const { return chances_.chance(draft, depth); }

 private:
  // A draft beyond what promises most. At most one is asked for and one more verified a round.
  struct Try {
    double cost = 0;    // of asking and verifying
    bool runs = false;  // it is the last draft verified
    double rate = 1;    // tokens for the cost of a pass that the round gives without it
  };
  bool may_try(double cost) const { return rest_ <= 0 && savings_ >= cost; }

  DraftChances chances_;
  Acceptance by_depth_;  // of all drafts together
  double savings_;       // for tries
  int rest_ = 0;         // rounds without a try from here on
  double lead_ = kAdvance;

  // Chances that drafts and all before them on their paths stand, into joints_.
  void weigh(std::span<const Draft> drafts);

  // The round under way.
  int asked_ = 0;
  int deepest_ = 0;
  std::array<double, kMostNodes> joints_ = {};
  std::array<int, kMostNodes> depths_ = {};
  double least_joint_ = 0;             // that could be worth a row
  const CostModel* paying_ = nullptr;  // the prices of a drafter that grows
  int steps_ = 0;                      // that it was paid
  Try try_;
  double cost_ = 0;
  double held_back_ = -1;  // the chance of the first draft that was not verified; -1: there is none
};

}  // namespace paceline

// A union of drafters, which decides for every token anew: the request's own text, the store of
// what the trunk has written, and the draft head, which goes on from any token.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "spec/draft_chances.h"
#include "spec/own_text.h"
#include "spec/store.h"

namespace paceline {

// Own text and store cost nothing, and of the two the likelier speaks. Where neither is sure, the
// head is asked as well, if the rule finds it worth the price, and speaks where it is likelier. How
// likely a draft is to stand is a running share by source and evidence (spec/draft_chances.h), kept
// here, of all drafts that the text came to tell about; so a union drafts in replay what it drafts
// live.
class UnionDrafter : public Drafter {
 public:
  // Null where there is none.
  UnionDrafter(std::shared_ptr<const NgramStore> store, std::unique_ptr<TokenDrafter> head);

  Tap tap() const override { return head_ ? head_->tap() : Tap::After; }
  DraftSource source() const override { return head_ ? DraftSource::Mtp : DraftSource::Lookup; }
  void begin(std::span<const TokenId> prompt, int capacity) override;
  void prefill(std::span<const TokenId> next, Mat<const float> hidden) override;
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override;
  int draft(std::span<Draft> out) override;
  bool asks() const override { return head_ != nullptr; }
  int draft_asking(std::span<Draft> out, PayRule& rule) override;

 private:
  // A draft and the chance that it stands; 0: there is none.
  struct Candidate {
    Draft draft = {};
    double chance = 0;
  };
  Candidate for_nothing(int depth) const;
  Candidate likelier(const Candidate& best, const Draft& draft, int depth) const;
  Draft ask_head();
  // Shares of what stood where the head had been asked, by how sure the others were.
  Acceptance& asked_at(double chance_without);

  std::shared_ptr<const NgramStore> store_;
  std::unique_ptr<TokenDrafter> head_;
  OwnText text_;
  DraftChances chances_;
  std::array<Acceptance, kEvidenceLevels> asked_;

  struct Proposed {
    Draft draft;
    double without = -1;  // the chance for nothing, where the head was asked; else negative
  };
  std::vector<Proposed> proposed_;  // of the last round that drafted
  int head_read_ = 0;               // steps of the head in this round
};

}  // namespace paceline

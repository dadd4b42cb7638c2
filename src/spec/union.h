// A union of drafters, which decides for every token anew: the request's own text, the store of
// what the trunk has written, and the draft head, which goes on from any token.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "spec/draft_chances.h"
#include "spec/own_text.h"
#include "spec/store.h"

namespace paceline {

// What a union drafts from.
struct UnionSources {
  bool own_text = true;
  std::shared_ptr<const NgramStore> store = nullptr;  // null: none
  std::unique_ptr<TokenDrafter> head = nullptr;       // null: none
};

// Grows a tree best first: of all guesses for all places that can be reached, the one that is
// likeliest to stand with all before it becomes the next draft; a chain grows from its end alone.
// Own text and store cost nothing. Where neither is sure, the head is asked as well, if the rule
// finds it worth the price. How likely a guess is to stand is a running share by source and
// evidence (spec/draft_chances.h), kept here, of all guesses that the text came to tell about; so a
// union drafts in replay what it drafts live.
class UnionDrafter : public Drafter {
 public:
  explicit UnionDrafter(UnionSources sources);

  Tap tap() const override { return from_.head ? from_.head->tap() : Tap::After; }
  DraftSource source() const override {
    return from_.head ? DraftSource::Mtp : DraftSource::Lookup;
  }
  void begin(std::span<const TokenId> prompt, int capacity) override;
  void prefill(std::span<const TokenId> next, Mat<const float> hidden) override;
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override;
  int draft(std::span<Draft> out) override;  // a chain
  bool grows() const override { return true; }
  int grow(const DraftRoom& room, GrowthRule& rule) override;

 private:
  static constexpr int kMostGuesses = 6;  // of one source for one place

  // A guess for the place behind draft `parent`.
  struct Guess {
    Draft draft = {};
    int parent = kPending;
    double joint = 0;  // that it stands with all before it
    int order = 0;     // in which guesses came: of equals the first one
    static std::pair<double, int> rank(const Guess& guess) { return {-guess.joint, guess.order}; }
  };
  // A place: behind a draft, or behind the text.
  struct Place {
    OwnText::Place text;
    int draft = kPending;
    int depth = 1;       // of guesses for it
    double joint = 1;    // that it is reached
    double without = 0;  // the chance of the likeliest guess that cost nothing
    bool waits = false;  // for the head to be asked
    bool asked = false;
    bool read = false;       // the head has read the text up to there
    TokenId likeliest = -1;  // once the head was asked
    int n_guesses = 0;
    std::array<Draft, 3 * kMostGuesses> guesses = {};
    std::span<const Draft> named() const { return std::span(guesses).first(n_guesses); }
  };

  void open_place(std::span<const Draft> drafts, double joint, int deepest);
  void guess_for_nothing(Place& place);
  // The place that waits with most to hope for; null: none does.
  Place* waiting();
  // Of the likeliest guess, given that the place is reached; and not given that.
  double chance_once_asked(const Place& place) const;
  double hope(const Place& place) const { return place.joint * chance_once_asked(place); }
  // Asks the head, where the rule agrees.
  void offer(Place& place, std::span<const Draft> drafts, GrowthRule& rule);
  void ask_head(Place& place, std::span<const Draft> drafts);
  int unread(std::span<const Draft> drafts, int draft) const;
  // Puts up the guesses of a place from `first` on.
  void put_up(const Place& place, int first);
  // The likeliest source's guess of a token that is named, and the chance that it stands, given
  // that the place is reached.
  struct Likely {
    Draft draft = {};
    double chance = 0;
  };
  Likely likely(const Place& place, TokenId token) const;
  void learn(std::span<const TokenId> tokens);
  UnionSources from_;
  OwnText text_;
  DraftChances chances_;
  // What stood where the head had been asked, by how sure the others were.
  std::array<Acceptance, kEvidenceLevels> asked_;

  // The last round that drafted.
  std::vector<Place> places_;  // [0] behind the text, [1 + i] behind draft i
  std::vector<Guess> open_;    // what may become a draft: a heap
  int n_guesses_ = 0;
  int most_of_head_ = 1;  // guesses for a place: a chain takes the first alone
  std::vector<Draft> drafts_;
};

}  // namespace paceline

// A drafter guesses the tokens that come next. Whatever it guesses, the text stays the trunk's own;
// only the speed depends on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "models/model.h"

namespace paceline {

enum class DraftSource : uint8_t { Lookup, Scripted, Mtp, Store };
inline constexpr int kDraftSources = 4;
const char* to_string(DraftSource source);  // "lookup"

// One guess. The drafts of a round form a tree: each continues an earlier one of the list, or the
// pending token. A chain, where each continues the one before it, is the simple case and the
// default.
struct Draft {
  TokenId token = 0;
  DraftSource source = DraftSource::Scripted;
  // How sure the source is, as a level in [0, kEvidenceLevels): for lookup the length of the match,
  // for store and head evidence_of() the chance that they see.
  // The policy learns what a level is worth from what was accepted.
  uint8_t evidence = 0;
  // Not the first that its source names for this place, which makes a level worth less.
  bool second = false;
  // Draft i continues draft i - back; where that is before the first, the pending token.
  uint8_t back = 1;
};
inline constexpr int kEvidenceLevels = 16;
inline constexpr int kMostNodes = kMostTreeRows - 1;  // drafts of a tree at most
inline constexpr int kPending = -1;                   // index of the pending token among the drafts

// The draft that draft i continues, or kPending.
inline int parent_of(std::span<const Draft> drafts, int i) { return i - drafts[i].back; }
// The drafts on the path of draft i, itself among them; 0 for kPending.
int depth_of(std::span<const Draft> drafts, int i);
// A draft's `back` when it is the i-th.
inline uint8_t back_to(int parent, int i) { return static_cast<uint8_t>(i - parent); }

// All that its drafter said of a draft, as one number.
inline constexpr int kEvidenceKinds = kDraftSources * 2 * kEvidenceLevels;
inline int evidence_kind(const Draft& draft) {
  return (static_cast<int>(draft.source) * 2 + (draft.second ? 1 : 0)) * kEvidenceLevels +
         draft.evidence;
}

// Levels are sixteenths of the square root of a chance: small chances, which a tree lives on, are
// told apart more finely.
uint8_t evidence_of(double chance);
double chance_at(int evidence);  // in the middle of the level

// A step of a draft head at a place of the tree that is there, for a price.
struct Offer {
  std::span<const Draft> drafts;  // of this round so far
  int place = kPending;           // what is asked for is what follows this one
  double without = 0;  // the chance that the likeliest guess for the place stands if nothing is
                       // paid, given that the place is reached; 0: there is none for nothing
  double with = 0;     // the same if it is
  int steps = 1;       // of a draft head, for which the price is
};

// Asked while a tree grows.
class GrowthRule {
 public:
  virtual ~GrowthRule() = default;
  virtual bool pays(const Offer& offer) = 0;
  // Whether a draft that stands with this chance, all before it included, could be worth its row.
  virtual bool worth(double joint) const = 0;
};

// Whatever it costs: with a fixed number of drafts.
class AlwaysPays : public GrowthRule {
 public:
  bool pays(const Offer& /*offer*/) override { return true; }
  bool worth(double /*joint*/) const override { return true; }
};

// What a round has room for.
struct DraftRoom {
  std::span<Draft> out;  // so many drafts
  int depth = 0;         // on the longest path
  bool chain = false;    // no two drafts for one position
};

// The calls come in this order: begin; prefill for the chunks of the prompt; observe with the first
// token of the output; then draft (not in every round) and observe in turn. Each row of the trunk's
// hiddens that is committed is handed over exactly once, together with the token that followed it,
// in the order of positions and without a gap, but for the prompt's beginning where it was taken
// over from an earlier sequence and not read again: what a draft head needs to keep one entry of
// its own cache per committed position. Rows that fell never arrive; what draft() itself wrote into
// such a cache is provisional, and observe overwrites it from the trunk's true hiddens.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // The hiddens that prefill() and observe() are to be handed.
  virtual Tap tap() const { return Tap::After; }
  // The dearest source that it drafts from.
  virtual DraftSource source() const { return DraftSource::Lookup; }

  // A new sequence, whose text so far is the prompt. Everything known of an earlier one is
  // forgotten. capacity: the tokens that prompt and output may have together; all memory for them
  // is taken here, since the calls below run inside rounds and allocate nothing.
  virtual void begin(std::span<const TokenId> prompt, int capacity) = 0;

  // The trunk has read a chunk of the prompt: row i of `hidden` (next.size() rows, dim) is its
  // hidden of the token before next[i]. `next` are tokens of the prompt, known since begin; the
  // prompt's last row comes with observe.
  virtual void prefill(std::span<const TokenId> next, Mat<const float> hidden) {
    (void)next, (void)hidden;
  }

  // `tokens`, at least one, were appended to the text: row i of `hidden` (tokens.size() rows, dim)
  // is the trunk's hidden of the token before tokens[i]. The view is valid during the call.
  virtual void observe(std::span<const TokenId> tokens, Mat<const float> hidden) = 0;

  // Guesses for the positions behind the text so far; fewer than out.size(), down to none, where
  // the drafter has nothing worth saying. Returns how many.
  virtual int draft(std::span<Draft> out) = 0;

  // A drafter that grows trees, the likeliest draft first, and asks before what costs something.
  // Others make chains whose drafts are all of one price, source()'s.
  virtual bool grows() const { return false; }
  virtual int grow(const DraftRoom& room, GrowthRule& rule) {
    (void)rule;
    return draft(room.out.first(std::min<size_t>(room.out.size(), room.depth)));
  }
};

// A drafter that goes on from any token: a draft head.
class TokenDrafter : public Drafter {
 public:
  // A new round, behind the text so far.
  virtual void start() = 0;
  // Its guesses for the place behind draft `place` of the round, or behind the text (kPending),
  // likeliest first, whoever drafted what stands before it. drafts[0 .. place] are those of the
  // calls before. Fills source, evidence and `second`, not `back`. Returns how many. A step for
  // each draft on the path that was not read yet, and one for the text.
  virtual int guess(std::span<const Draft> drafts, int place, std::span<Draft> out) = 0;
};

// Plain decoding: a drafter that never says anything.
class SilentDrafter : public Drafter {
 public:
  void begin(std::span<const TokenId> /*prompt*/, int /*capacity*/) override {}
  void observe(std::span<const TokenId> /*tokens*/, Mat<const float> /*hidden*/) override {}
  int draft(std::span<Draft> /*out*/) override { return 0; }
};

}  // namespace paceline

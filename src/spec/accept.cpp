#include "spec/accept.h"

#include <string>

#include "base/check.h"

namespace paceline {
namespace {

// The draft behind `place` with this token; kPending where there is none. A draft stands behind
// those that it continues.
int child_of(std::span<const Draft> drafts, int place, TokenId token) {
  for (int i = place + 1; i < static_cast<int>(drafts.size()); ++i)
    if (parent_of(drafts, i) == place && drafts[i].token == token) return i;
  return kPending;
}

// choice(row, path) is asked for the rows of the path in turn, and for no other; path: the tokens
// of the drafts on the way.
template <class Choice>
Accepted walk(std::span<const Draft> drafts, Choice&& choice) {
  Accepted accepted;
  std::array<TokenId, kMostDrafts> tokens = {};
  for (int place = kPending;;) {
    accepted.next = choice(place + 1, std::span<const TokenId>(tokens).first(accepted.n_drafts));
    const int child = child_of(drafts, place, accepted.next);
    if (child == kPending) return accepted;
    check(accepted.n_drafts < kMostDrafts, "no path is longer than a round's");
    tokens[accepted.n_drafts] = accepted.next;
    accepted.path[accepted.n_drafts++] = static_cast<uint8_t>(child);
    place = child;
  }
}

}  // namespace

Accepted accept_greedy(std::span<const Draft> drafts, std::span<const TokenId> choices) {
  return walk(drafts, [&](int row, std::span<const TokenId> /*path*/) {
    check(row < static_cast<int>(choices.size()), "there is a choice for every row that counts");
    return choices[row];
  });
}

Result<Accepted> AcceptRule::accept(std::span<const Draft> drafts, Mat<float> logits,
                                    int first_pos) {
  check(logits.rows == static_cast<int>(drafts.size()) + 1, "one row of logits a row of the block");
  // No draft is negative, so a row without a choice ends the walk.
  Accepted accepted = walk(drafts, [&](int row, std::span<const TokenId> path) {
    return choose(logits.row(row), first_pos + static_cast<int>(path.size()) + 1, path);
  });
  if (accepted.next < 0 && accepted.n_drafts > 0) {
    // The last draft that stands is the trunk's own token; the faulty row begins the next round,
    // unless the text ends before it.
    --accepted.n_drafts;
    accepted.next = drafts[accepted.path[accepted.n_drafts]].token;
  }
  if (accepted.next < 0) {
    return Error{ErrorCode::BadFormat,
                 "the logits at position " + std::to_string(first_pos) +
                     " have no finite maximum, so there is no next token; the weights are damaged "
                     "or overflow in this type, or the logit bias forbids every token"};
  }
  return accepted;
}

}  // namespace paceline

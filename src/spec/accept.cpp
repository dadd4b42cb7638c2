#include "spec/accept.h"

#include <string>

#include "base/check.h"

namespace paceline {
namespace {

// choice(row) is asked for rows 0, 1 ... in turn, and for none behind the first draft that falls.
template <class Choice>
Accepted longest_standing(std::span<const TokenId> drafts, Choice&& choice) {
  const int n = static_cast<int>(drafts.size());
  for (int row = 0;; ++row) {
    const TokenId next = choice(row);
    if (row == n || next != drafts[row]) return {.n_drafts = row, .next = next};
  }
}

}  // namespace

Accepted accept_greedy(std::span<const TokenId> drafts, std::span<const TokenId> choices) {
  return longest_standing(drafts, [&](int row) {
    check(row < static_cast<int>(choices.size()), "there is a choice for every row that counts");
    return choices[row];
  });
}

Result<Accepted> AcceptRule::accept(std::span<const TokenId> drafts, Mat<float> logits,
                                    int first_pos) {
  check(logits.rows == static_cast<int>(drafts.size()) + 1, "one row of logits a row of the block");
  // No draft is negative, so a row without a choice ends the walk.
  Accepted accepted = longest_standing(drafts, [&](int row) {
    return choose(logits.row(row), first_pos + row + 1, drafts.first(row));
  });
  if (accepted.next < 0 && accepted.n_drafts > 0) {
    // The last draft that stands is the trunk's own token; the faulty row begins the next round,
    // unless the text ends before it.
    --accepted.n_drafts;
    accepted.next = drafts[accepted.n_drafts];
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

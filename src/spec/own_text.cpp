#include "spec/own_text.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {

void OwnText::begin(std::span<const TokenId> prompt, int capacity) {
  text_.begin(capacity);
  append(prompt);
}

void OwnText::append(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) text_.append(token);
  rewind();
}

void OwnText::rewind() {
  n_drafts_ = 0;
  place_ = walked_ = text_.match();
}

TokenId OwnText::at(int index) const {
  const auto text = text_.text();
  const int n_text = static_cast<int>(text.size());
  return index < n_text ? text[index] : drafts_[index - n_text];
}

void OwnText::add_draft(TokenId token) {
  check(n_drafts_ < kMostDrafts, "no more drafts than a round has");
  const bool goes_on = place_.length > 0 && next() == token;
  drafts_[n_drafts_++] = token;
  walked_ = text_.extended(walked_, token);
  // No match grows by more than one token, so one that goes on is still the longest.
  if (goes_on)
    place_ = {.state = walked_.state, .length = place_.length + 1, .end = place_.end + 1};
  else
    place_ = walked_;
}

std::span<const TokenId> OwnText::tail(std::span<TokenId> room) const {
  const int end = static_cast<int>(text_.text().size()) + n_drafts_;
  const int n = std::min(static_cast<int>(room.size()), end);
  for (int i = 0; i < n; ++i) room[i] = at(end - n + i);
  return room.first(n);
}

}  // namespace paceline

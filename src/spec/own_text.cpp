#include "spec/own_text.h"

#include <algorithm>

#include "base/check.h"

namespace paceline {
namespace {

constexpr int kMostFollowers = 8;  // of one suffix that are looked at
constexpr int kMostSuffixes = 3;

}  // namespace

void OwnText::begin(std::span<const TokenId> prompt, int capacity) {
  text_.begin(capacity);
  append(prompt);
}

void OwnText::append(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) text_.append(token);
}

OwnText::Place OwnText::end() const {
  Place place;
  place.place_ = place.walked_ = text_.match();
  return place;
}

TokenId OwnText::at(const Place& place, int index) const {
  const auto text = text_.text();
  const int n_text = static_cast<int>(text.size());
  return index < n_text ? text[index] : place.drafts_[index - n_text];
}

OwnText::Place OwnText::behind(const Place& before, TokenId token) const {
  check(before.n_drafts_ < kMostDrafts, "no path is longer than a round's");
  Place place = before;
  const bool goes_on = before.match_length() > 0 && next(before) == token;
  place.drafts_[place.n_drafts_++] = token;
  place.walked_ = text_.extended(before.walked_, token);
  // No match grows by more than one token, so one that goes on is still the longest.
  if (goes_on)
    place.place_ = {.state = place.walked_.state,
                    .length = before.place_.length + 1,
                    .end = before.place_.end + 1};
  else
    place.place_ = place.walked_;
  return place;
}

std::span<const TokenId> OwnText::tail(const Place& place, std::span<TokenId> room) const {
  const int end = static_cast<int>(text_.text().size()) + place.n_drafts_;
  const int n = std::min(static_cast<int>(room.size()), end);
  for (int i = 0; i < n; ++i) room[i] = at(place, end - n + i);
  return room.first(n);
}

int OwnText::guesses(const Place& place, std::span<Guess> out) const {
  size_t n = 0;
  const auto add = [&](TokenId token, int length) {
    const auto known = out.first(n);
    if (n < out.size() && std::ranges::find(known, token, &Guess::token) == known.end())
      out[n++] = {.token = token, .length = length};
  };
  if (place.match_length() > 0) add(next(place), place.match_length());
  SuffixAutomaton::Place at = place.walked_;
  for (int i = 0; i < kMostSuffixes && at.length > 0; ++i, at = text_.shorter(at)) {
    std::array<SuffixAutomaton::Follower, kMostFollowers> room;
    const auto found = std::span(room).first(text_.followers(at, room));
    std::ranges::partial_sort(found, found.end(), std::greater(), &SuffixAutomaton::Follower::end);
    for (const auto& follower : found) add(follower.token, at.length);
  }
  return static_cast<int>(n);
}

}  // namespace paceline

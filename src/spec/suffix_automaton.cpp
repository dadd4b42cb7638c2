#include "spec/suffix_automaton.h"

#include <bit>

#include "base/check.h"

namespace paceline {

void SuffixAutomaton::begin(int capacity) {
  check(capacity >= 0, "a capacity is not negative");
  capacity_ = capacity;
  last_ = kRoot;
  match_length_ = 0;
  match_end_ = 0;
  text_.clear();
  text_.reserve(capacity);
  states_.clear();
  states_.reserve(2 * static_cast<size_t>(capacity) + 1);
  states_.push_back({});
  // Twice the bound of 3n transitions, rounded down or up by the power of two: half full at most.
  const size_t n_slots = std::bit_ceil(4 * static_cast<size_t>(capacity) + 8);
  slots_.assign(n_slots, {});
  slot_mask_ = n_slots - 1;
}

// The slot that holds the transition, or the free one where it would go.
size_t SuffixAutomaton::probe(int state, TokenId token) const {
  const uint64_t key =
      (uint64_t{static_cast<uint32_t>(state)} << 32) | static_cast<uint32_t>(token);
  size_t at = (key * 0x9e3779b97f4a7c15u) >> 32 & slot_mask_;  // Fibonacci hashing
  while (slots_[at].state != kNone && (slots_[at].state != state || slots_[at].token != token)) {
    at = (at + 1) & slot_mask_;
  }
  return at;
}

SuffixAutomaton::Slot* SuffixAutomaton::find(int state, TokenId token) {
  Slot& slot = slots_[probe(state, token)];
  return slot.state == kNone ? nullptr : &slot;
}

const SuffixAutomaton::Slot* SuffixAutomaton::find(int state, TokenId token) const {
  const Slot& slot = slots_[probe(state, token)];
  return slot.state == kNone ? nullptr : &slot;
}

SuffixAutomaton::Place SuffixAutomaton::match() const {
  return {.state = last_ == kRoot ? kRoot : states_[last_].link,
          .length = match_length_,
          .end = match_end_};
}

SuffixAutomaton::Place SuffixAutomaton::extended(Place place, TokenId token) const {
  for (int state = place.state, length = place.length; state != kNone;) {
    if (const Slot* slot = find(state, token))
      return {slot->target, length + 1, states_[slot->target].recent};
    state = states_[state].link;
    length = state == kNone ? 0 : states_[state].length;
  }
  return {};
}

SuffixAutomaton::Place SuffixAutomaton::shorter(Place place) const {
  const int link = states_[place.state].link;
  if (link == kNone) return {};
  return {.state = link, .length = states_[link].length, .end = -1};
}

int SuffixAutomaton::followers(Place place, std::span<Follower> out) const {
  size_t n = 0;
  for (int at = states_[place.state].first_slot; at != kNone && n < out.size();
       at = slots_[at].next_slot)
    out[n++] = {.token = slots_[at].token, .end = states_[slots_[at].target].recent};
  return static_cast<int>(n);
}

void SuffixAutomaton::add_transition(int state, TokenId token, int target) {
  const size_t at = probe(state, token);
  slots_[at] = {
      .state = state, .token = token, .target = target, .next_slot = states_[state].first_slot};
  states_[state].first_slot = static_cast<int>(at);
}

// `target` holds strings that are longer than those reached from `from`, and only the shorter ones
// end at the new place: they move into a state of their own, which is returned.
int SuffixAutomaton::split(int from, TokenId token, int target) {
  const int copy = static_cast<int>(states_.size());
  states_.push_back({.length = states_[from].length + 1,
                     .link = states_[target].link,
                     .recent = states_[target].recent,
                     .first_slot = kNone});
  for (int at = states_[target].first_slot; at != kNone; at = slots_[at].next_slot) {
    add_transition(copy, slots_[at].token, slots_[at].target);
  }
  states_[target].link = copy;
  for (int state = from; state != kNone; state = states_[state].link) {
    Slot* slot = find(state, token);
    if (slot == nullptr || slot->target != target) break;
    slot->target = copy;
  }
  return copy;
}

void SuffixAutomaton::append(TokenId token) {
  const int end = static_cast<int>(text_.size());
  check(end < capacity_, "a text grows no longer than it was announced");
  text_.push_back(token);

  const int whole = static_cast<int>(states_.size());
  states_.push_back({.length = end + 1, .link = kRoot, .recent = end, .first_slot = kNone});
  int from = last_;
  Slot* slot = nullptr;
  while (from != kNone && (slot = find(from, token)) == nullptr) {
    add_transition(from, token, whole);
    from = states_[from].link;
  }
  if (from != kNone) {
    const int target = slot->target;
    states_[whole].link =
        states_[target].length == states_[from].length + 1 ? target : split(from, token, target);
  }
  last_ = whole;
  update_match(whole, end);
}

void SuffixAutomaton::update_match(int whole, int end) {
  const int state = states_[whole].link;
  const int length = states_[state].length;
  // A match that goes on stays the most recent one: every occurrence of the longer suffix continues
  // an occurrence of the shorter.
  const bool goes_on =
      length > 1 && length == match_length_ + 1 && text_[match_end_ + 1] == text_[end];
  match_end_ = goes_on ? match_end_ + 1 : states_[state].recent;
  match_length_ = length;

  int climb = 0;
  for (int above = state; above != kRoot && climb < max_climb_; above = states_[above].link) {
    states_[above].recent = end;
    ++climb;
  }
}

}  // namespace paceline

#include "spec/union.h"

#include <algorithm>

namespace paceline {
namespace {

// Where own text or store are as sure as that, a head could hardly do better.
constexpr double kSure = 0.8;

// What the head adds where nothing else is known: of that share of the drafts that would fall it
// makes good.
constexpr double kHeadAdds = 0.35;

// The chance that a store's guess stands, from what it counted behind a context of 1, 2 ... tokens:
// kShare * count / (total + kDoubt). As measured on a small trunk's answers to other prompts.
constexpr std::array<double, NgramStore::kOrders> kShare = {0.35, 0.85, 0.95};
constexpr std::array<double, NgramStore::kOrders> kDoubt = {2, 1.5, 1.0};

// Of the lesser chances of a token that several sources name, the part that counts.
constexpr double kAgreement = 0.75;

double chance_of(const StoreGuess& guess) {
  return kShare[guess.order - 1] * guess.count /
         (static_cast<double>(guess.total) + kDoubt[guess.order - 1]);
}

}  // namespace

UnionDrafter::UnionDrafter(UnionSources sources) : from_(std::move(sources)) {
  places_.reserve(kMostNodes + 1);
  open_.reserve(places_.capacity() * 3 * kMostGuesses);
  drafts_.reserve(kMostNodes);
}

void UnionDrafter::begin(std::span<const TokenId> prompt, int capacity) {
  text_.begin(prompt, capacity);
  if (from_.head) from_.head->begin(prompt, capacity);
  chances_ = DraftChances();
  for (int level = 0; level < kEvidenceLevels; ++level) {
    const double without = chance_at(level);
    asked_[level] = Acceptance(without + (1 - without) * kHeadAdds);
  }
  places_.clear();
}

void UnionDrafter::prefill(std::span<const TokenId> next, Mat<const float> hidden) {
  if (from_.head) from_.head->prefill(next, hidden);
}

void UnionDrafter::observe(std::span<const TokenId> tokens, Mat<const float> hidden) {
  learn(tokens);
  text_.append(tokens);
  if (from_.head) from_.head->observe(tokens, hidden);
}

// Follows the text through the tree for as long as it was foreseen.
void UnionDrafter::learn(std::span<const TokenId> tokens) {
  int at = kPending;
  for (const TokenId token : tokens) {
    if (places_.empty()) break;
    const Place& place = places_[at + 1];
    for (const Draft& guess : place.named()) chances_.add(guess, place.depth, guess.token == token);
    if (place.asked)
      asked_[evidence_of(place.without)].add(place.depth, place.likeliest == token ? 1 : 0);
    const int parent = at;
    for (int i = 0; i < static_cast<int>(drafts_.size()); ++i)
      if (parent_of(drafts_, i) == parent && drafts_[i].token == token) at = i;
    if (at == parent) break;
  }
  places_.clear();
}

// --- guesses -------------------------------------------------------------------------------------

// Where several sources name a token the likeliest counts, and of the others a part.
UnionDrafter::Likely UnionDrafter::likely(const Place& place, TokenId token) const {
  Likely found;
  double most = 0;
  double others_fall = 1;
  for (const Draft& guess : place.named()) {
    if (guess.token != token) continue;
    const double chance = chances_.chance(guess, place.depth);
    others_fall *= 1 - kAgreement * std::min(chance, most);
    if (chance <= most) continue;
    most = chance;
    found.draft = guess;
  }
  found.chance = 1 - (1 - most) * others_fall;
  return found;
}

void UnionDrafter::put_up(const Place& place, int first) {
  for (const Draft& guess : place.named().subspan(first)) {
    const auto [draft, chance] = likely(place, guess.token);
    open_.push_back({.draft = draft,
                     .parent = place.draft,
                     .joint = place.joint * chance,
                     .order = n_guesses_++});
    std::ranges::push_heap(open_, std::greater(), Guess::rank);
  }
}

void UnionDrafter::guess_for_nothing(Place& place) {
  if (from_.own_text) {
    std::array<OwnText::Guess, kMostGuesses> room;
    const int n = text_.guesses(place.text, room);
    for (int i = 0; i < n; ++i)
      place.guesses[place.n_guesses++] = {
          .token = room[i].token,
          .source = DraftSource::Lookup,
          .evidence = static_cast<uint8_t>(std::min(room[i].length, kEvidenceLevels - 1)),
          .second = i > 0};
  }
  if (from_.store != nullptr) {
    std::array<TokenId, NgramStore::kOrders> tail;
    std::array<StoreGuess, kMostGuesses> room;
    const int n = from_.store->guesses(text_.tail(place.text, tail), room);
    for (int i = 0; i < n; ++i)
      place.guesses[place.n_guesses++] = {.token = room[i].token,
                                          .source = DraftSource::Store,
                                          .evidence = evidence_of(chance_of(room[i])),
                                          .second = i > 0};
  }
  for (const Draft& guess : place.named())
    place.without = std::max(place.without, likely(place, guess.token).chance);
  put_up(place, 0);
}

// Behind the last of the drafts, or behind the text.
void UnionDrafter::open_place(std::span<const Draft> drafts, double joint, int deepest) {
  const int draft = static_cast<int>(drafts.size()) - 1;
  Place& place = places_.emplace_back();
  place.draft = draft;
  place.joint = joint;
  if (draft == kPending) {
    place.text = text_.end();
  } else {
    const Place& before = places_[parent_of(drafts, draft) + 1];
    place.depth = before.depth + 1;
    if (place.depth <= deepest) place.text = text_.behind(before.text, drafts[draft].token);
  }
  if (place.depth > deepest) return;
  guess_for_nothing(place);
  place.waits = from_.head != nullptr && place.without < kSure;
}

// --- the head ------------------------------------------------------------------------------------

double UnionDrafter::chance_once_asked(const Place& place) const {
  return std::max(place.without, asked_[evidence_of(place.without)].chance(place.depth));
}

UnionDrafter::Place* UnionDrafter::waiting() {
  Place* most = nullptr;
  for (Place& place : places_)
    if (place.waits && (most == nullptr || hope(place) > hope(*most))) most = &place;
  return most;
}

int UnionDrafter::unread(std::span<const Draft> drafts, int draft) const {
  int steps = 0;
  for (int at = draft;; at = parent_of(drafts, at)) {
    if (!places_[at + 1].read) ++steps;
    if (at == kPending) return steps;
  }
}

void UnionDrafter::offer(Place& place, std::span<const Draft> drafts, GrowthRule& rule) {
  place.waits = false;
  if (rule.pays({.drafts = drafts,
                 .place = place.draft,
                 .without = place.without,
                 .with = chance_once_asked(place),
                 .steps = unread(drafts, place.draft)}))
    ask_head(place, drafts);
}

void UnionDrafter::ask_head(Place& place, std::span<const Draft> drafts) {
  if (!places_[0].read) from_.head->start();
  for (int at = place.draft;; at = parent_of(drafts, at)) {
    places_[at + 1].read = true;
    if (at == kPending) break;
  }
  std::array<Draft, kMostGuesses> room;
  const int n = from_.head->guess(drafts, place.draft, std::span(room).first(most_of_head_));
  const int before = place.n_guesses;
  for (const Draft& guess : std::span(room).first(n)) place.guesses[place.n_guesses++] = guess;
  put_up(place, before);
  place.asked = true;
  double most = 0;
  for (const Draft& guess : place.named()) {
    const double chance = likely(place, guess.token).chance;
    if (chance <= most) continue;
    most = chance;
    place.likeliest = guess.token;
  }
}

// --- growth --------------------------------------------------------------------------------------

int UnionDrafter::draft(std::span<Draft> out) {
  AlwaysPays always;
  return grow({.out = out, .depth = static_cast<int>(out.size()), .chain = true}, always);
}

int UnionDrafter::grow(const DraftRoom& room, GrowthRule& rule) {
  places_.clear();
  open_.clear();
  drafts_.clear();
  n_guesses_ = 0;
  most_of_head_ = room.chain ? 1 : kMostGuesses;
  if (!room.out.empty()) open_place({}, 1, room.depth);
  while (drafts_.size() < room.out.size()) {
    Place* place = waiting();
    if (place != nullptr && (open_.empty() || hope(*place) >= open_.front().joint)) {
      if (!rule.worth(hope(*place))) break;
      offer(*place, drafts_, rule);
      continue;
    }
    if (open_.empty() || !rule.worth(open_.front().joint)) break;
    const Guess best = open_.front();
    std::ranges::pop_heap(open_, std::greater(), Guess::rank);
    open_.pop_back();
    const int n = static_cast<int>(drafts_.size());
    bool known = false;  // from another source
    for (int i = 0; i < n; ++i)
      known |= parent_of(drafts_, i) == best.parent && drafts_[i].token == best.draft.token;
    if (known) continue;
    drafts_.push_back(best.draft);
    drafts_.back().back = back_to(best.parent, n);
    if (room.chain) open_.clear();
    open_place(drafts_, best.joint, room.depth);
  }
  std::ranges::copy(drafts_, room.out.begin());
  return static_cast<int>(drafts_.size());
}

}  // namespace paceline

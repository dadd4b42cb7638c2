#include "text/bpe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <queue>

namespace paceline {

namespace {

// Pieces up to this many tokens are merged by rescanning, which is faster than a heap and takes no
// memory; nearly all words are shorter.
constexpr size_t kShort = 48;

uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}
// Fibonacci hashing: the high bits of a product with 2^64 / golden ratio.
uint64_t spread(uint64_t key) { return (key ^ key >> 29) * 0x9E3779B97F4A7C15u; }

}  // namespace

Result<BpeModel> BpeModel::make(std::vector<Merge> merges, Options options) {
  BpeModel model;
  const size_t n_slots = std::bit_ceil(std::max<size_t>(merges.size() * 2, 2));
  model.slots_.resize(n_slots);
  model.shift_ = 64 - std::countr_zero(n_slots);
  for (size_t i = 0; i < merges.size(); ++i) {
    const uint64_t pair = pair_key(merges[i].left, merges[i].right);
    size_t slot = spread(pair) >> model.shift_;
    while (model.slots_[slot].rank != kNoRank) {
      if (model.slots_[slot].pair == pair)
        return Error{ErrorCode::BadFormat, fmt::format("merges {} and {} join the same two tokens",
                                                       model.slots_[slot].rank, i)};
      slot = (slot + 1) & (n_slots - 1);
    }
    model.slots_[slot] = {pair, static_cast<uint32_t>(i)};
  }
  model.merges_ = std::move(merges);
  model.options_ = std::move(options);
  return model;
}

uint32_t BpeModel::rank(TokenId left, TokenId right) const {
  const uint64_t pair = pair_key(left, right);
  size_t slot = spread(pair) >> shift_;
  while (slots_[slot].rank != kNoRank && slots_[slot].pair != pair)
    slot = (slot + 1) & (slots_.size() - 1);
  return slots_[slot].rank;
}

void BpeModel::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (!options_.whole_pieces.empty()) {
    const auto found = options_.whole_pieces.find(std::string(piece));
    if (found != options_.whole_pieces.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  const size_t first = ids.size();
  start(piece, ids);
  const size_t n = ids.size() - first;
  if (n <= kShort)
    ids.resize(first + merge_short(ids.data() + first, n));
  else
    merge_long(ids, first);
}

// One token a byte.
void BpeModel::start(std::string_view piece, std::vector<TokenId>& ids) const {
  bool after_unknown = false;
  for (char c : piece) {
    const TokenId id = options_.byte_tokens[static_cast<uint8_t>(c)];
    if (id >= 0) {
      ids.push_back(id);
    } else if (options_.unknown >= 0 && !(options_.fuse_unknown && after_unknown)) {
      ids.push_back(options_.unknown);
    }
    after_unknown = id < 0;
  }
}

// Merges ids[0, n) in place, n <= kShort; returns how many are left.
size_t BpeModel::merge_short(TokenId* ids, size_t n) const {
  uint32_t ranks[kShort];  // ranks[i] is that of the pair (i, i + 1)
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = rank(ids[i], ids[i + 1]);
  while (n > 1) {
    const size_t at = static_cast<size_t>(std::min_element(ranks, ranks + n - 1) - ranks);
    if (ranks[at] == kNoRank) break;
    ids[at] = merges_[ranks[at]].merged;
    std::copy(ids + at + 2, ids + n, ids + at + 1);
    if (at + 2 < n) std::copy(ranks + at + 2, ranks + n - 1, ranks + at + 1);
    --n;
    if (at > 0) ranks[at - 1] = rank(ids[at - 1], ids[at]);
    if (at + 1 < n) ranks[at] = rank(ids[at], ids[at + 1]);
  }
  return n;
}

// The same with a linked list of tokens and a heap of pairs. Pairs that a merge has made obsolete
// stay in the heap and are told by their rank, which no longer is the rank of what stands there.
void BpeModel::merge_long(std::vector<TokenId>& ids, size_t first) const {
  constexpr uint32_t kNone = UINT32_MAX;
  struct Link {
    uint32_t prev, next;
  };
  TokenId* const token = ids.data() + first;
  const auto n = static_cast<uint32_t>(ids.size() - first);
  std::vector<Link> links(n);
  for (uint32_t i = 0; i < n; ++i) links[i] = {i == 0 ? kNone : i - 1, i + 1 == n ? kNone : i + 1};

  // Rank above position, so that the smallest is the leftmost of the lowest rank.
  std::vector<uint64_t> pairs;
  for (uint32_t i = 0; i + 1 < n; ++i) {
    const uint32_t r = rank(token[i], token[i + 1]);
    if (r != kNoRank) pairs.push_back(static_cast<uint64_t>(r) << 32 | i);
  }
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> heap(std::greater<>(),
                                                                            std::move(pairs));
  const auto push = [&](uint32_t left) {
    const uint32_t r = rank(token[left], token[links[left].next]);
    if (r != kNoRank) heap.push(static_cast<uint64_t>(r) << 32 | left);
  };
  while (!heap.empty()) {
    const auto left = static_cast<uint32_t>(heap.top());
    const auto wanted = static_cast<uint32_t>(heap.top() >> 32);
    heap.pop();
    if (token[left] < 0 || links[left].next == kNone) continue;
    const uint32_t right = links[left].next;
    if (rank(token[left], token[right]) != wanted) continue;

    token[left] = merges_[wanted].merged;
    token[right] = -1;  // no longer a token of its own
    links[left].next = links[right].next;
    if (links[left].next != kNone) {
      links[links[left].next].prev = left;
      push(left);
    }
    if (links[left].prev != kNone) push(links[left].prev);
  }
  const auto end = std::remove(ids.begin() + static_cast<ptrdiff_t>(first), ids.end(), -1);
  ids.erase(end, ids.end());
}

}  // namespace paceline

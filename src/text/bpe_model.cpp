#include "text/bpe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <queue>

#include "text/utf8.h"

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

void CharTokens::add(uint32_t code, TokenId id) {
  uint16_t& page = pages_[code >> 8];
  if (page == 0) {
    cells_.resize(cells_.size() + 256, -1);
    page = static_cast<uint16_t>(cells_.size() / 256);
  }
  cells_[static_cast<size_t>(page - 1) * 256 + (code & 0xFF)] = id;
}

Result<BpeModel> BpeModel::make(const std::vector<Merge>& merges, Options options) {
  BpeModel model;
  const size_t n_slots = std::bit_ceil(std::max<size_t>(merges.size() * 2, 2));
  model.slots_.resize(n_slots);
  model.shift_ = 64 - std::countr_zero(n_slots);
  for (size_t i = 0; i < merges.size(); ++i) {
    const Merge& merge = merges[i];
    const auto at = static_cast<size_t>(&model.slot(merge.left, merge.right) - model.slots_.data());
    if (model.slots_[at].rank != kNoRank)
      return Error{ErrorCode::BadFormat,
                   fmt::format("merge {} joins two tokens that an earlier one joins", i)};
    model.slots_[at] = {pair_key(merge.left, merge.right), merge.rank, merge.merged};
  }
  model.options_ = std::move(options);
  return model;
}

const BpeModel::Slot& BpeModel::slot(TokenId left, TokenId right) const {
  const uint64_t pair = pair_key(left, right);
  size_t at = spread(pair) >> shift_;
  while (slots_[at].rank != kNoRank && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void BpeModel::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (!options_.whole_pieces.empty()) {
    const auto found = options_.whole_pieces.find(piece);
    if (found != options_.whole_pieces.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  const size_t first = ids.size();
  if (options_.char_tokens.empty())
    start_bytes(piece, ids);
  else
    start_chars(piece, ids);
  const size_t n = ids.size() - first;
  if (n <= kShort)
    ids.resize(first + merge_short(ids.data() + first, n));
  else
    merge_long(ids, first);
}

void BpeModel::start_bytes(std::string_view piece, std::vector<TokenId>& ids) const {
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

void BpeModel::start_chars(std::string_view piece, std::vector<TokenId>& ids) const {
  bool after_unknown = false;
  for (size_t pos = 0; pos < piece.size();) {
    const Utf8Char c = read_utf8(piece, pos);
    const auto length = static_cast<size_t>(c.length);
    const TokenId id = options_.char_tokens.of(c.code);
    // The vocabulary has the tokens of all bytes or of none (bpe_tokenizer.h).
    const bool known = id >= 0 || options_.byte_tokens[0] >= 0;
    if (id >= 0) {
      ids.push_back(id);
    } else if (known) {
      for (const char byte : piece.substr(pos, length))
        ids.push_back(options_.byte_tokens[static_cast<uint8_t>(byte)]);
    } else if (options_.unknown >= 0 && !(options_.fuse_unknown && after_unknown)) {
      ids.push_back(options_.unknown);
    }
    after_unknown = !known;
    pos += length;
  }
}

// Merges ids[0, n) in place, n <= kShort; returns how many are left.
size_t BpeModel::merge_short(TokenId* ids, size_t n) const {
  uint32_t ranks[kShort];  // ranks[i] is that of the pair (i, i + 1)
  TokenId merged[kShort];  // and merged[i] what it becomes
  const auto look_up = [&](size_t i) {
    const Slot& found = slot(ids[i], ids[i + 1]);
    ranks[i] = found.rank;
    merged[i] = found.merged;
  };
  for (size_t i = 0; i + 1 < n; ++i) look_up(i);
  while (n > 1) {
    const size_t at = static_cast<size_t>(std::min_element(ranks, ranks + n - 1) - ranks);
    if (ranks[at] == kNoRank) break;
    ids[at] = merged[at];
    std::copy(ids + at + 2, ids + n, ids + at + 1);
    if (at + 2 < n) {
      std::copy(ranks + at + 2, ranks + n - 1, ranks + at + 1);
      std::copy(merged + at + 2, merged + n - 1, merged + at + 1);
    }
    --n;
    if (at > 0) look_up(at - 1);
    if (at + 1 < n) look_up(at);
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
    const uint32_t r = slot(token[i], token[i + 1]).rank;
    if (r != kNoRank) pairs.push_back(static_cast<uint64_t>(r) << 32 | i);
  }
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> heap(std::greater<>(),
                                                                            std::move(pairs));
  const auto push = [&](uint32_t left) {
    const uint32_t r = slot(token[left], token[links[left].next]).rank;
    if (r != kNoRank) heap.push(static_cast<uint64_t>(r) << 32 | left);
  };
  while (!heap.empty()) {
    const auto left = static_cast<uint32_t>(heap.top());
    const auto wanted = static_cast<uint32_t>(heap.top() >> 32);
    heap.pop();
    if (token[left] < 0 || links[left].next == kNone) continue;
    const uint32_t right = links[left].next;
    const Slot& merge = slot(token[left], token[right]);
    if (merge.rank != wanted) continue;

    token[left] = merge.merged;
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

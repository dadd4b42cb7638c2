// The bytes of a store of n-grams. Between its reader and its builder; docs/formats.md has the same
// in prose.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace paceline::store_format {

static_assert(std::endian::native == std::endian::little, "stores are mapped as they are");

inline constexpr std::array<char, 8> kMagic = {'P', 'L', 'S', 'T', 'O', 'R', 'E', '1'};
inline constexpr int kOrders = 3;  // contexts of 1 to 3 tokens

// A file is: Header | uint32 first[kBuckets + 1] | uint64 entry[n_entries] | SHA-256 of all before.
// Contexts are known by a hash of 36 bits, the key: its upper bits choose the bucket, the lower
// ones stand in the entry. Bucket b holds the entries first[b] to first[b + 1], ascending by key;
// those of one context stand together, most frequent first, kOthers last.
inline constexpr int kKeyBits = 36;
inline constexpr int kTagBits = 20;
inline constexpr int kBuckets = 1 << (kKeyBits - kTagBits);
inline constexpr int kDigestBytes = 32;

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t vocab_size = 0;
  uint32_t n_entries = 0;
  uint64_t n_tokens = 0;                   // that were ever added: the clock that ages go by
  std::array<char, 64> trunk_sha256 = {};  // hexadecimal; zero bytes: of no file
};
static_assert(sizeof(Header) == 88);

inline constexpr int64_t kFixedBytes = int64_t{sizeof(Header)} + int64_t{kBuckets + 1} * 4 +
                                       4 /* so that entries are aligned */ + kDigestBytes;
inline constexpr int64_t kEntriesAt = int64_t{sizeof(Header)} + int64_t{kBuckets + 2} * 4;
static_assert(kEntriesAt % 8 == 0);

// One token behind one context: token 24 bits | tag 20 | age 4 | count 16.
struct Entry {
  uint32_t token = 0;
  uint32_t tag = 0;
  uint32_t age = 0;    // in steps of kAgeTokens since it was seen last, kOldest at most
  uint32_t count = 0;  // at least 1
};
inline constexpr uint32_t kOthers = 0xffffff;  // the token of tokens that were left out
inline constexpr uint32_t kOldest = 15;
inline constexpr uint32_t kMostCount = 0xffff;
inline constexpr int kAgeShift = 14;  // 16,384 tokens a step

inline uint64_t pack(const Entry& entry) {
  return uint64_t{entry.token} | uint64_t{entry.tag} << 24 | uint64_t{entry.age} << 44 |
         uint64_t{entry.count} << 48;
}
inline Entry unpack(uint64_t bits) {
  return {.token = static_cast<uint32_t>(bits & 0xffffff),
          .tag = static_cast<uint32_t>(bits >> 24 & 0xfffff),
          .age = static_cast<uint32_t>(bits >> 44 & 0xf),
          .count = static_cast<uint32_t>(bits >> 48)};
}
inline uint32_t bucket_of(uint64_t key) { return static_cast<uint32_t>(key >> kTagBits); }
inline uint32_t tag_of(uint64_t key) { return static_cast<uint32_t>(key & 0xfffff); }

// keys[n - 1] is that of the last n tokens; returns how many there are, kOrders at most.
inline int context_keys(std::span<const TokenId> text, std::array<uint64_t, kOrders>& keys) {
  const int orders = static_cast<int>(text.size() < kOrders ? text.size() : kOrders);
  uint64_t hash = 0;
  for (int n = 1; n <= orders; ++n) {
    hash += static_cast<uint32_t>(text[text.size() - n]) + 1;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;  // the finaliser of splitmix64
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    hash ^= hash >> 31;
    keys[n - 1] = hash >> (64 - kKeyBits);
  }
  return orders;
}

}  // namespace paceline::store_format

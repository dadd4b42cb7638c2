// Ids of tokens by the text with which a file names them, while the file is read.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "text/text_hash.h"

namespace paceline {

class TokenIndex {
 public:
  explicit TokenIndex(size_t n_expected = 0) { reserve(n_expected); }
  void reserve(size_t n) {
    entries_.reserve(n);
    if (slots_.empty() || n * 2 > slots_.size()) resize_slots(std::bit_ceil(n * 2 + 2));
  }
  size_t size() const { return entries_.size(); }

  struct Entry {
    std::string_view text;  // outlives the index
    TokenId id = -1;
  };
  const std::vector<Entry>& entries() const { return entries_; }

  // False, changing nothing, when the text is there already.
  bool insert(std::string_view text, TokenId id) {
    if ((entries_.size() + 1) * 2 > slots_.size())
      resize_slots(std::bit_ceil(slots_.size() * 2 + 2));
    const uint64_t hash = hash_of_text(text);
    Slot& slot = slots_[slot_of(text, hash)];
    if (slot.entry != 0) return false;
    entries_.push_back({text, id});
    slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(entries_.size())};
    return true;
  }
  // -1 when there is none.
  TokenId find(std::string_view text) const {
    const Slot& slot = slots_[slot_of(text, hash_of_text(text))];
    return slot.entry == 0 ? -1 : entries_[slot.entry - 1].id;
  }

 private:
  struct Slot {
    uint32_t tag = 0;    // the high half of the hash
    uint32_t entry = 0;  // 1 + its index; 0: the slot is free
  };
  // Where `text` stands, or the free slot where it would.
  size_t slot_of(std::string_view text, uint64_t hash) const {
    const auto tag = static_cast<uint32_t>(hash >> 32);
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].entry != 0 &&
           (slots_[at].tag != tag || entries_[slots_[at].entry - 1].text != text))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void resize_slots(size_t n) {
    slots_.assign(n, {});
    for (size_t i = 0; i < entries_.size(); ++i) {
      const uint64_t hash = hash_of_text(entries_[i].text);
      slots_[slot_of(entries_[i].text, hash)] = {static_cast<uint32_t>(hash >> 32),
                                                 static_cast<uint32_t>(i + 1)};
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full; linear probing
  std::vector<Entry> entries_;
};

}  // namespace paceline

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
    if (slot.used) return false;
    entries_.push_back({text, id});
    slot = {text.data(), static_cast<uint32_t>(text.size()), static_cast<uint32_t>(hash >> 32), id,
            true};
    return true;
  }
  // -1 when there is none.
  TokenId find(std::string_view text) const { return slots_[slot_of(text, hash_of_text(text))].id; }

 private:
  // The text lies in the slot, not behind an index: a look-up is a miss less.
  struct Slot {
    const char* data = nullptr;
    uint32_t size = 0;
    uint32_t tag = 0;  // the high half of the hash
    TokenId id = -1;
    bool used = false;
  };
  // Where `text` stands, or the free slot where it would.
  size_t slot_of(std::string_view text, uint64_t hash) const {
    const auto tag = static_cast<uint32_t>(hash >> 32);
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].used &&
           (slots_[at].tag != tag || std::string_view(slots_[at].data, slots_[at].size) != text))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void resize_slots(size_t n) {
    slots_.assign(n, {});
    for (const Entry& entry : entries_) {
      const uint64_t hash = hash_of_text(entry.text);
      slots_[slot_of(entry.text, hash)] = {entry.text.data(),
                                           static_cast<uint32_t>(entry.text.size()),
                                           static_cast<uint32_t>(hash >> 32), entry.id, true};
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full; linear probing
  std::vector<Entry> entries_;
};

}  // namespace paceline

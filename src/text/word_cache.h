// Remembers the ids of pieces within one call of encode: few words make up most of a text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "text/text_hash.h"

namespace paceline {

class WordCache {
 public:
  static constexpr size_t kLongest = 32;  // bytes of a piece worth remembering

  // The ids of `piece`, from memory or from encode(piece, ids), appended to `ids`.
  template <class Encode>
  void append(std::string_view piece, std::vector<TokenId>& ids, const Encode& encode) {
    if (piece.size() > kLongest) return encode(piece, ids);
    if (slots_.empty()) slots_.resize(kFirstSlots);
    const uint64_t hash = hash_of_text(piece);
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].length != 0; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.hash != hash || word_of(slot) != piece) continue;
      ids.insert(ids.end(), ids_.begin() + slot.first_id,
                 ids_.begin() + slot.first_id + slot.n_ids);
      return;
    }
    const size_t before = ids.size();
    encode(piece, ids);
    if (n_used_ == kMostWords) return;
    slots_[at] = {hash, static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(ids_.size()),
                  static_cast<uint16_t>(piece.size()), static_cast<uint16_t>(ids.size() - before)};
    words_ += piece;
    ids_.insert(ids_.end(), ids.begin() + static_cast<ptrdiff_t>(before), ids.end());
    if (++n_used_ * 2 > slots_.size()) grow();
  }

 private:
  static constexpr size_t kFirstSlots = 256;
  static constexpr size_t kMostWords = 1 << 17;

  struct Slot {
    uint64_t hash = 0;
    uint32_t first_byte = 0, first_id = 0;
    uint16_t length = 0, n_ids = 0;  // length 0: the slot is free
  };

  std::string_view word_of(const Slot& slot) const {
    return std::string_view(words_).substr(slot.first_byte, slot.length);
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.length == 0) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].length != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full; linear probing
  size_t n_used_ = 0;
  std::string words_;
  std::vector<TokenId> ids_;
};

}  // namespace paceline

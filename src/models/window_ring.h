// Memory of the layers that see a sliding window only: as many pages as a window and the widest
// block take, used in turn.
#pragma once

#include <cstddef>
#include <vector>

#include "base/memory.h"
#include "base/result.h"

namespace paceline {

// Slot s stands in page s / kSpan, as in every cache, and pages that lie n_pages() apart stand in
// the same memory. With N positions committed and any block in flight, everything is there that the
// rows from N on may see, and all that a fork at the last whole page below N may: rolling back is
// counting fewer rows here too.
class WindowRing {
 public:
  static constexpr int kUsualBlock = 128;  // rows that there is room for from the start

  // page_bytes: of all sliding layers; 0 makes an empty ring, for a model without such layers.
  // window >= 1. slots: of the sequence; no more memory is taken than they need.
  static Result<WindowRing> make(size_t page_bytes, int window, int slots);
  // What make() would take.
  static size_t bytes_for(size_t page_bytes, int window, int slots);

  // A block of rows at slots begin .. end - 1 is about to be written; `block` rows at most now and
  // later. Wider blocks than ever before make the ring longer; no other call allocates.
  void open(int begin, int end, int block);

  // Takes over what `other` remembers of the pages below `pages`.
  void copy_from(const WindowRing& other, int pages);

  // Positions from here on are remembered, up to the last one written.
  int first_remembered() const;
  // Whether all is there that a row at `position` sees before itself.
  bool can_go_on_at(int position) const;

  std::byte* const* pages() const { return page_data_.data(); }  // by slot / kSpan
  int n_pages() const { return n_pages_; }
  size_t bytes() const { return page_bytes_ * n_pages_; }

 private:
  Result<void> take_pages(int n);

  size_t page_bytes_ = 0;
  int window_ = 0;
  int all_pages_ = 0;  // of the whole sequence
  int n_pages_ = 0;    // in memory
  int block_ = 0;
  int begin_ = 0;  // pages before it were never here
  int end_ = 0;    // pages before it have been written
  HugeBuffer memory_;
  std::vector<std::byte*> page_data_;
};

}  // namespace paceline

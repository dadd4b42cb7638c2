#include "models/window_ring.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/table.h"

namespace paceline {
namespace {

int pages_for(int slots) { return (slots + kSpan - 1) / kSpan; }

// With N positions committed, the pages from that of the first position which a row at N, rounded
// down to a page, sees to that of the last row of a block of `block` rows.
int pages_needed(int window, int block) {
  return pages_for(window - 1) + (kSpan - 1 + block - 1) / kSpan + 1;
}

}  // namespace

size_t WindowRing::bytes_for(size_t page_bytes, int window, int slots) {
  return page_bytes * std::min(pages_for(slots), pages_needed(window, kUsualBlock));
}

Result<WindowRing> WindowRing::make(size_t page_bytes, int window, int slots) {
  WindowRing ring;
  if (page_bytes == 0) return ring;
  check(window >= 1, "a window holds a position at least");
  ring.page_bytes_ = page_bytes;
  ring.window_ = window;
  ring.all_pages_ = pages_for(slots);
  ring.block_ = kUsualBlock;
  if (auto taken = ring.take_pages(pages_needed(window, kUsualBlock)); !taken) return taken.error();
  return ring;
}

// Puts what is remembered into a ring of n pages, or as many as the sequence has.
Result<void> WindowRing::take_pages(int n) {
  n = std::min(n, all_pages_);
  if (n <= n_pages_) return {};
  auto memory = HugeBuffer::allocate(page_bytes_ * n);
  if (!memory) return memory.error();
  std::vector<std::byte*> data(all_pages_);
  for (int page = 0; page < all_pages_; ++page)
    data[page] = memory->data() + page_bytes_ * (page % n);
  begin_ = first_remembered() / kSpan;  // a longer ring does not bring back what is gone
  for (int page = begin_; page < end_; ++page)
    std::memcpy(data[page], page_data_[page], page_bytes_);
  memory_ = std::move(*memory);
  page_data_ = std::move(data);
  n_pages_ = n;
  return {};
}

void WindowRing::open(int begin, int end, int block) {
  if (page_bytes_ == 0) return;
  if (block > block_) {
    block_ = block;
    check(take_pages(pages_needed(window_, block)).has_value(),
          "there is memory for a block behind a window");
  }
  check(can_go_on_at(begin), "a window remembers what the next row sees");
  end_ = std::max(end_, pages_for(end));
}

void WindowRing::copy_from(const WindowRing& other, int pages) {
  if (page_bytes_ == 0) return;
  check(page_bytes_ == other.page_bytes_ && pages <= all_pages_, "a fork has its parent's shape");
  end_ = pages;
  begin_ = std::max(other.first_remembered() / kSpan, pages - n_pages_);
  for (int page = begin_; page < end_; ++page)
    std::memcpy(page_data_[page], other.page_data_[page], page_bytes_);
}

int WindowRing::first_remembered() const { return std::max(begin_, end_ - n_pages_) * kSpan; }

bool WindowRing::can_go_on_at(int position) const {
  return page_bytes_ == 0 || first_remembered() <= std::max(position - window_ + 1, 0);
}

}  // namespace paceline

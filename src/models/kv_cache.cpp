#include "models/kv_cache.h"

#include <algorithm>

#include "base/check.h"
#include "fmt/format.h"

namespace paceline {
namespace {

CacheElement element_of(CacheType type) {
  switch (type) {
    case CacheType::F16:
      return CacheElement::F16;
    case CacheType::BF16:
      return CacheElement::BF16;
    case CacheType::F32:
      return CacheElement::F32;
  }
  return CacheElement::F32;
}

size_t element_bytes(CacheType type) { return type == CacheType::F32 ? 4 : 2; }

size_t pages_for(int positions) { return (static_cast<size_t>(positions) + kSpan - 1) / kSpan; }

}  // namespace

int KvShape::n_sliding() const {
  return static_cast<int>(std::count(slides.begin(), slides.end(), true));
}
size_t KvShape::key_bytes() const { return element_bytes(type) * kSpan * head_dim; }
size_t KvShape::value_bytes() const { return element_bytes(type) * kSpan * value_stride(); }

KvCache::KvCache(const KvShape& shape, int capacity, int length, std::vector<KvPage> shared,
                 std::shared_ptr<KvMemory> memory)
    : SequenceState(capacity, length),
      shape_(shape),
      element_(element_of(shape.type)),
      // Nothing is read behind a fork that holds all it has room for.
      n_slots_(capacity + (capacity > length ? kMostTreeRows : 0)),
      memory_(std::move(memory)),
      pages_(std::move(shared)) {
  size_t full = 0;
  size_t sliding = 0;
  layer_at_.reserve(shape_.n_layers);
  for (int layer = 0; layer < shape_.n_layers; ++layer) {
    size_t& at = shape_.layer_slides(layer) ? sliding : full;
    layer_at_.push_back(at);
    at += shape_.layer_bytes();
  }
}

Result<std::unique_ptr<KvCache>> KvCache::make(const KvShape& shape, int capacity,
                                               std::shared_ptr<KvMemory> memory) {
  if (memory == nullptr) memory = std::make_shared<KvMemory>();
  std::unique_ptr<KvCache> cache(new KvCache(shape, capacity, 0, {}, std::move(memory)));
  if (auto taken = cache->take_memory(); !taken) return taken.error();
  return cache;
}

Result<void> KvCache::take_memory() {
  const size_t page_bytes = shape_.page_bytes();
  const size_t missing = page_bytes == 0 ? 0 : pages_for(n_slots_) - pages_.size();
  const size_t bytes = page_bytes * missing;
  const size_t ring_bytes =
      shape_.n_sliding() == 0
          ? 0
          : WindowRing::bytes_for(shape_.sliding_page_bytes(), shape_.window, n_slots_);
  // Pages come when they are first written; what cannot fit is refused now, not then.
  if (const uint64_t free = available_memory(); bytes + ring_bytes > free)
    return Error{ErrorCode::TooLarge,
                 fmt::format("a context of {} positions takes {} MiB of cache, {} MiB are free; "
                             "ask for a smaller context",
                             capacity(), (bytes + ring_bytes) >> 20, free >> 20)};
  auto ring = WindowRing::make(shape_.sliding_page_bytes(), shape_.window, n_slots_);
  if (!ring) return ring.error();
  ring_ = std::move(*ring);
  if (missing > 0) {
    const auto memory = memory_->take(bytes);
    if (!memory) return memory.error();
    for (size_t i = 0; i < missing; ++i)
      pages_.emplace_back(*memory, (*memory)->data() + page_bytes * i);
  }
  for (const KvPage& page : pages_) page_data_.push_back(page.get());
  return {};
}

int64_t KvCache::bytes() const {
  return std::ssize(pages_) * static_cast<int64_t>(shape_.page_bytes()) +
         static_cast<int64_t>(ring_.bytes());
}

Result<std::unique_ptr<SequenceState>> KvCache::fork(int capacity, int length) const {
  check(length >= 0 && length <= this->length(), "only committed positions are shared");
  int shared = length / kSpan;  // pages
  if (!ring_.can_go_on_at(shared * kSpan)) shared = 0;
  const auto n_pages = pages_.empty() ? 0 : shared;
  const int whole = shared * kSpan;
  const int kept = shape_.n_sliding() > 0 ? whole : std::max(whole, std::min(length, capacity));
  std::unique_ptr<KvCache> cache(new KvCache(shape_, std::max(capacity, whole), kept,
                                             {pages_.begin(), pages_.begin() + n_pages}, memory_));
  if (auto taken = cache->take_memory(); !taken) return taken.error();
  if (shared > 0) cache->ring_.copy_from(ring_, shared);
  if (kept > whole) cache->copy_from(*this, whole);
  return std::unique_ptr<SequenceState>(std::move(cache));
}

// Keys as far as whole tiles of them go, values of the positions alone.
void KvCache::copy_from(const KvCache& other, int first) {
  const int n = length() - first;
  const size_t tile_bytes = shape_.key_bytes() / (kSpan / kKeyTile);
  const size_t keys = (n + kKeyTile - 1) / kKeyTile * tile_bytes;
  const size_t values = shape_.value_bytes() / kSpan * n;
  const std::byte* from = other.page_data_[first / kSpan];
  std::byte* to = page_data_[first / kSpan];
  const int heads = shape_.n_layers * shape_.n_kv_heads;
  for (int i = 0; i < heads; ++i, from += shape_.head_bytes(), to += shape_.head_bytes()) {
    std::copy_n(from, keys, to);
    std::copy_n(from + shape_.key_bytes(), values, to + shape_.key_bytes());
  }
}

void KvCache::append_bytes(int position, std::vector<std::byte>& to) const {
  check(position >= first_remembered(), "a window has not moved on past the position");
  const size_t size = element_bytes(shape_.type);
  const int slot = position % kSpan;
  for (int layer = 0; layer < shape_.n_layers; ++layer) {
    const std::byte* head = pages_of(layer)[position / kSpan] + layer_at_[layer];
    for (int i = 0; i < shape_.n_kv_heads; ++i, head += shape_.head_bytes()) {
      const std::byte* key =
          head + (slot / kKeyTile * shape_.head_dim * kKeyTile + slot % kKeyTile) * size;
      for (int d = 0; d < shape_.head_dim; ++d, key += kKeyTile * size)
        to.insert(to.end(), key, key + size);
      const std::byte* value = head + shape_.key_bytes() + slot * shape_.value_stride() * size;
      to.insert(to.end(), value, value + shape_.head_dim * size);
    }
  }
}

void KvCache::open(const Block& block) {
  open_block(block);
  check(block.rows() <= n_slots_ - length(), "every row of a block has a slot");
  ring_.open(block.first_pos(), block.first_pos() + block.rows(),
             std::min(block.capacity(), n_slots_));
}

void KvCache::append(int layer, int row, int head, const float* k, const float* v,
                     const KernelTable& table) {
  std::byte* page =
      pages_of(layer)[(length() + row) / kSpan] + layer_at_[layer] + head * shape_.head_bytes();
  const int slot = (length() + row) % kSpan;
  table.append_key(k + head * shape_.head_dim, shape_.head_dim, element_, page, slot);
  table.append_value(v + head * shape_.head_dim, shape_.head_dim, shape_.value_stride(), element_,
                     page + shape_.key_bytes(), slot);
}

// Rows go to the front, in ascending order, so none is written over before it was moved.
void KvCache::keep(std::span<const int> path) {
  const int n = static_cast<int>(path.size());
  for (int i = 0; i < n; ++i) {
    if (path[i] == i) continue;
    for (int layer = 0; layer < shape_.n_layers; ++layer)
      move_row(layer, length() + path[i], length() + i);
  }
}

void KvCache::move_row(int layer, int from_slot, int to_slot) {
  if (shape_.type == CacheType::F32)
    move_elements<uint32_t>(layer, from_slot, to_slot);
  else
    move_elements<uint16_t>(layer, from_slot, to_slot);
}

template <class Element>
void KvCache::move_elements(int layer, int from_slot, int to_slot) {
  const auto page_of = [&](int slot) { return pages_of(layer)[slot / kSpan] + layer_at_[layer]; };
  const auto elements = [](std::byte* at) { return reinterpret_cast<Element*>(at); };
  const auto lane_of = [&](int slot) {
    return slot % kSpan / kKeyTile * shape_.head_dim * kKeyTile + slot % kKeyTile;
  };
  std::byte* from = page_of(from_slot);
  std::byte* to = page_of(to_slot);
  const int stride = shape_.value_stride();
  for (int head = 0; head < shape_.n_kv_heads; ++head) {
    const Element* from_key = elements(from) + lane_of(from_slot);
    Element* to_key = elements(to) + lane_of(to_slot);
    for (int d = 0; d < shape_.head_dim; ++d) to_key[d * kKeyTile] = from_key[d * kKeyTile];
    std::copy_n(elements(from + shape_.key_bytes()) + from_slot % kSpan * stride, stride,
                elements(to + shape_.key_bytes()) + to_slot % kSpan * stride);
    from += shape_.head_bytes();
    to += shape_.head_bytes();
  }
}

void KvCache::fill(int layer, AttendArgs& args) const {
  args.element = element_;
  args.first_open = length();
  args.pages = pages_of(layer);
  args.window = shape_.layer_slides(layer) ? shape_.window : 0;
  args.layer_bytes = layer_at_[layer];
  args.head_bytes = shape_.head_bytes();
  args.value_bytes = shape_.key_bytes();
  args.value_stride = shape_.value_stride();
}

}  // namespace paceline

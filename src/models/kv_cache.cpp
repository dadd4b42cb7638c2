#include "models/kv_cache.h"

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

}  // namespace

KvCache::KvCache(const KvShape& shape, int capacity, CacheType type)
    : SequenceState(capacity),
      shape_(shape),
      element_(element_of(type)),
      value_stride_((shape.head_dim + 15) / 16 * 16) {
  const size_t element_bytes = type == CacheType::F32 ? 4 : 2;
  const size_t positions = (static_cast<size_t>(capacity) + kKeyTile - 1) / kKeyTile * kKeyTile;
  key_head_bytes_ = positions * shape.head_dim * element_bytes;
  value_head_bytes_ = positions * value_stride_ * element_bytes;
}

Result<std::unique_ptr<KvCache>> KvCache::make(const KvShape& shape, int capacity, CacheType type) {
  std::unique_ptr<KvCache> cache(new KvCache(shape, capacity, type));
  const size_t bytes =
      (cache->key_head_bytes_ + cache->value_head_bytes_) * shape.n_kv_heads * shape.n_layers;
  // Pages come when they are first written; what cannot fit is refused now, not then.
  if (const uint64_t free = available_memory(); bytes > free)
    return Error{ErrorCode::TooLarge,
                 fmt::format("a context of {} positions takes {} MiB of cache, {} MiB are free; "
                             "ask for a smaller context",
                             capacity, bytes >> 20, free >> 20)};
  auto memory = HugeBuffer::allocate(bytes);
  if (!memory) return memory.error();
  cache->memory_ = std::move(*memory);
  return cache;
}

std::byte* KvCache::keys(int layer) const {
  return memory_.data() +
         (key_head_bytes_ + value_head_bytes_) * shape_.n_kv_heads * static_cast<size_t>(layer);
}

std::byte* KvCache::values(int layer) const {
  return keys(layer) + key_head_bytes_ * shape_.n_kv_heads;
}

void KvCache::open(const Block& block) {
  check(block.is_chain(), "a flat cache holds chains");
  open_block(block);
}

void KvCache::append(int layer, int position, const float* k, const float* v,
                     const KernelTable& table) {
  for (int head = 0; head < shape_.n_kv_heads; ++head) {
    table.append_key(k + head * shape_.head_dim, shape_.head_dim, element_,
                     keys(layer) + head * key_head_bytes_, position);
    table.append_value(v + head * shape_.head_dim, shape_.head_dim, value_stride_, element_,
                       values(layer) + head * value_head_bytes_, position);
  }
}

void KvCache::fill(int layer, AttendArgs& args) const {
  args.element = element_;
  args.keys = keys(layer);
  args.values = values(layer);
  args.key_head_bytes = key_head_bytes_;
  args.value_head_bytes = value_head_bytes_;
  args.value_stride = value_stride_;
}

}  // namespace paceline

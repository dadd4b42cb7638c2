#include "models/kv_memory.h"

#include <utility>

namespace paceline {

Result<std::shared_ptr<HugeBuffer>> KvMemory::take(size_t bytes) {
  HugeBuffer buffer;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [bytes](const HugeBuffer& b) {
      return b.size() >= bytes && b.size() / 2 <= bytes;
    };
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it)
      if (fits(*it) && (best == idle_.end() || it->size() < best->size())) best = it;
    if (best != idle_.end()) {
      buffer = std::move(*best);
      idle_bytes_ -= buffer.size();
      idle_.erase(best);
    }
  }
  if (buffer.size() == 0) {
    auto fresh = HugeBuffer::allocate(bytes);
    if (!fresh) return fresh.error();
    buffer = std::move(*fresh);
  }
  return std::shared_ptr<HugeBuffer>(new HugeBuffer(std::move(buffer)),
                                     [pool = weak_from_this()](HugeBuffer* gone) {
                                       if (const auto still = pool.lock())
                                         still->put_back(std::move(*gone));
                                       delete gone;
                                     });
}

size_t KvMemory::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return idle_bytes_;
}

void KvMemory::put_back(HugeBuffer buffer) {
  const std::lock_guard lock(mutex_);
  if (idle_bytes_ + buffer.size() > kMostIdle) return;
  idle_bytes_ += buffer.size();
  idle_.push_back(std::move(buffer));
}

}  // namespace paceline

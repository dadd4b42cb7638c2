// Memory of caches that are gone, for those to come.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/memory.h"
#include "base/result.h"

namespace paceline {

// The system hands out memory page by page, at first touch and filled with zeros; with short
// answers, many at a time, that took a fifteenth of all time. Nothing in a cache is read before it
// was written, so what one sequence leaves serves the next as it is.
class KvMemory : public std::enable_shared_from_this<KvMemory> {
 public:
  static constexpr size_t kMostIdle = size_t{64} << 20;  // bytes; what is more goes back

  // At least so many bytes, which hold anything. They come back here when whoever holds them, and
  // whoever shares them, has let go. TooLarge as HugeBuffer::allocate.
  Result<std::shared_ptr<HugeBuffer>> take(size_t bytes);

  size_t idle_bytes() const;

 private:
  void put_back(HugeBuffer buffer);

  mutable std::mutex mutex_;  // of all below
  std::vector<HugeBuffer> idle_;
  size_t idle_bytes_ = 0;
};

}  // namespace paceline

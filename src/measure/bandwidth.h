// How fast this machine can read memory: a bare loop over a buffer as large as the weights, on huge
// pages, with the threads that decoding has. What decoding could reach at most.
#pragma once

#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "base/threads.h"

namespace paceline::measure {

class StreamLoop {
 public:
  // bytes: as large as the weights; more than 1 GiB is cut to that. TooLarge without the memory.
  static Result<StreamLoop> make(int64_t bytes, int threads);

  // Reads the buffer once from end to end and keeps the time. Inside the timing: the hand-over to
  // the threads and the reading; nothing else.
  void pass();
  // GB/s (1e9 bytes a second); 0 before the first pass.
  double median_rate() const;
  double best_rate() const;
  int64_t bytes() const { return static_cast<int64_t>(buffer_.size()); }

 private:
  StreamLoop(HugeBuffer buffer, int threads);

  HugeBuffer buffer_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<double> rates_;
  uint64_t sum_ = 0;  // of what was read, so that the reading is not optimised away
};

}  // namespace paceline::measure

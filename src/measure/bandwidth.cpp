#include "measure/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "measure/statistics.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline::measure {
namespace {

constexpr int64_t kLine = 64;   // bytes of a cache line
constexpr int64_t kStep = 256;  // bytes a turn of the loop reads

#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t read_avx2(const std::byte* data, int64_t bytes) {
  __m256i sums[8];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int64_t at = 0; at < bytes; at += kStep) {
    // A few KiB ahead: the hardware's own prefetcher stops at page borders.
    for (int64_t line = 0; line < kStep; line += kLine) {
      _mm_prefetch(reinterpret_cast<const char*>(data + at + 4096 + line), _MM_HINT_T0);
    }
    for (int i = 0; i < 8; ++i) {
      const auto* from = reinterpret_cast<const __m256i*>(data + at + i * 32);
      sums[i] = _mm256_xor_si256(sums[i], _mm256_load_si256(from));
    }
  }
  for (int i = 1; i < 8; ++i) sums[0] = _mm256_xor_si256(sums[0], sums[i]);
  alignas(32) uint64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), sums[0]);
  return parts[0] ^ parts[1] ^ parts[2] ^ parts[3];
}
#endif

uint64_t read_plain(const std::byte* data, int64_t bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t sums[4] = {};
  for (int64_t i = 0; i < bytes / 8; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sums[lane] ^= words[i + lane];
  }
  return sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}

uint64_t read_once(const std::byte* data, int64_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return read_avx2(data, bytes);
#endif
  return read_plain(data, bytes);
}

// Until all threads are there, or one of them is long in coming.
void meet(ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(1);
  std::atomic<int> here{0};
  pool.run(pool.size(), [&](int, int) {
    here.fetch_add(1, std::memory_order_relaxed);
    while (here.load(std::memory_order_relaxed) < pool.size() && Clock::now() < deadline) {
    }
  });
}

}  // namespace

StreamLoop::StreamLoop(HugeBuffer buffer, int threads)
    : buffer_(std::move(buffer)), pool_(std::make_unique<ThreadPool>(threads)) {
  // Pages appear where they are first written; a page of zeros that nobody wrote is one shared
  // page.
  pool_->split(bytes(), int64_t{2} << 20, [&](int64_t begin, int64_t end) {
    std::fill(buffer_.data() + begin, buffer_.data() + end, std::byte{1});
  });
}

Result<StreamLoop> StreamLoop::make(int64_t bytes, int threads) {
  constexpr int64_t kSmallest = int64_t{1} << 20;
  constexpr int64_t kLargest = int64_t{1} << 30;
  const int64_t size = std::clamp(bytes, kSmallest, kLargest) / kStep * kStep;
  auto buffer = HugeBuffer::allocate(static_cast<size_t>(size));
  if (!buffer) return buffer.error();
  return StreamLoop(*std::move(buffer), threads);
}

void StreamLoop::pass() {
  std::atomic<uint64_t> sum{0};
  meet(*pool_);  // threads that have parked wake up outside the timing
  const auto begin_time = std::chrono::steady_clock::now();
  pool_->split(bytes(), 4096, [&](int64_t begin, int64_t end) {
    sum.fetch_xor(read_once(buffer_.data() + begin, end - begin), std::memory_order_relaxed);
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_time;
  sum_ ^= sum.load();
  rates_.push_back(static_cast<double>(bytes()) / seconds.count() / 1e9);
}

double StreamLoop::median_rate() const { return rates_.empty() ? 0 : median(rates_); }

double StreamLoop::best_rate() const {
  return rates_.empty() ? 0 : *std::max_element(rates_.begin(), rates_.end());
}

}  // namespace paceline::measure

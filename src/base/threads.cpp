#include "base/threads.h"

#include <sched.h>

#include <chrono>
#include <fstream>
#include <string>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline {
namespace {

// Long enough to bridge the serial parts between two matrix products, short enough not to burn a
// core while a user reads.
constexpr auto kSpin = std::chrono::microseconds(200);
constexpr int kPollsPerClockRead = 64;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` is no longer `old`: spinning first, then parked.
void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old, bool may_spin) {
  if (may_spin) {
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < kPollsPerClockRead; ++i) {
        if (value.load(std::memory_order_acquire) != old) return;
        relax();
      }
    } while (std::chrono::steady_clock::now() < deadline);
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) count = CPU_COUNT(&set);
  // A container may hold fewer CPU-seconds a second than it shows CPUs (cgroup v2).
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (quota_file >> quota >> period && quota != "max" && period > 0) {
    const int allowed = static_cast<int>(std::atof(quota.c_str()) / period);
    if (allowed >= 1 && allowed < count) count = allowed;
  }
  return count < 1 ? 1 : count;
}

void set_float_control() {
#if defined(__x86_64__)
  _mm_setcsr(0x1f80);  // all exceptions masked, nearest, neither flush-to-zero nor denormals-as-zero
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
#endif
}

bool float_control_is_default() {
#if defined(__x86_64__)
  return (_mm_getcsr() & ~0x3fu) == 0x1f80;  // the low six bits are sticky flags
#else
  return true;
#endif
}

ThreadPool::ThreadPool(int threads) : size_(threads), finished_(new Signal[threads]) {
  check(threads >= 1, "a thread pool has at least one thread");
  set_float_control();
  for (int t = 1; t < size_; ++t) workers_.emplace_back([this, t] { work(t); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  started_.value.fetch_add(1, std::memory_order_release);
  started_.value.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run_erased(Call call, void* context) {
  call_ = call;
  context_ = context;
  const uint32_t run = started_.value.load(std::memory_order_relaxed) + 1;
  if (size_ > 1) {
    started_.value.store(run, std::memory_order_release);
    started_.value.notify_all();  // costs no system call while nobody is parked
  }
  call(context, 0);
  // More threads than CPUs: spinning would keep from the CPU the very thread that is waited for.
  const bool may_spin = size_ <= available_cpus_;
  for (int t = 1; t < size_; ++t) wait_for_change(finished_[t].value, run - 1, may_spin);
}

void ThreadPool::work(int thread) {
  set_float_control();
  uint32_t seen = 0;
  for (;;) {
    wait_for_change(started_.value, seen, size_ <= available_cpus_);
    if (stop_) return;
    ++seen;
    call_(context_, thread);
    finished_[thread].value.store(seen, std::memory_order_release);
    finished_[thread].value.notify_one();
  }
}

}  // namespace paceline

#include "base/threads.h"

#include <sched.h>

#include <chrono>
#include <fstream>
#include <string>
#include <system_error>

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
  _mm_setcsr(
      0x1f80);  // all exceptions masked, nearest, neither flush-to-zero nor denormals-as-zero
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

ThreadPool::ThreadPool(int threads) : size_(threads), active_(threads) {
  check(threads >= 1, "a thread pool has at least one thread");
  set_float_control();
  workers_.reserve(threads - 1);
  try {
    for (int t = 1; t < size_; ++t) workers_.emplace_back([this, t] { work(t); });
  } catch (const std::system_error&) {  // the system has no more threads, or no memory for one
    stop_workers();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop_workers(); }

void ThreadPool::stop_workers() {
  stop_.store(true, std::memory_order_relaxed);
  started_.value.fetch_add(1, std::memory_order_release);
  started_.value.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::use(int threads) {
  check(threads >= 0 && threads <= size_, "no more threads are used than there are");
  active_.store(threads == 0 ? size_ : threads, std::memory_order_relaxed);
}

void ThreadPool::take_pieces(uint32_t run, int thread) {
  uint64_t open = open_.value.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(open >> 32) == run && static_cast<uint32_t>(open) > 0) {
    if (!open_.value.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
      continue;
    // The run cannot end before this piece has, so its fields may be read; behind the count below
    // they may be those of another run.
    const auto pieces = static_cast<uint32_t>(pieces_);
    call_(context_, thread, static_cast<int>(pieces - static_cast<uint32_t>(open)));
    if (finished_.value.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces)
      finished_.value.notify_one();  // costs no system call while nobody is parked
    open = open_.value.load(std::memory_order_acquire);
  }
}

void ThreadPool::run_erased(int pieces, Call call, void* context) {
#if !defined(NDEBUG)
  check(float_control_is_default(), "whoever computes has the default floating-point control word");
#endif
  if (size() == 1 || pieces == 1) {
    for (int piece = 0; piece < pieces; ++piece) call(context, 0, piece);
    return;
  }
  const uint32_t run = started_.value.load(std::memory_order_relaxed) + 1;
  call_ = call;
  context_ = context;
  pieces_ = pieces;
  finished_.value.store(0, std::memory_order_relaxed);
  open_.value.store((uint64_t{run} << 32) | static_cast<uint32_t>(pieces),
                    std::memory_order_release);
  started_.value.store(run, std::memory_order_release);
  started_.value.notify_all();
  take_pieces(run, 0);
  for (uint32_t done = finished_.value.load(std::memory_order_acquire);
       done != static_cast<uint32_t>(pieces);
       done = finished_.value.load(std::memory_order_acquire))
    wait_for_change(finished_.value, done, may_spin());
}

void ThreadPool::work(int thread) {
  set_float_control();
  uint32_t seen = 0;
  for (;;) {
    wait_for_change(started_.value, seen, may_spin());
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = started_.value.load(std::memory_order_acquire);
    if (thread < size()) take_pieces(seen, thread);
  }
}

}  // namespace paceline

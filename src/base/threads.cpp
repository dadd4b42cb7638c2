#include "base/threads.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// Whether one thread can have all others of the program pass a full memory barrier. Whoever parks
// does, so that handing out a run, which is done far more often, can go without one: it would wait
// there until the shares have crossed to the cores of others.
bool can_fence_all() {
  static const bool can =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return can;
}

void fence_all() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (can_fence_all()) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

// The other side of it.
void meet_fence_all() {
  if (can_fence_all())
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Whether `ready` came true before it was time to park.
template <class Ready>
bool spin_until(Ready ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPollsPerClockRead; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
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
  shares_ = std::vector<Share>(static_cast<size_t>(threads));
  finished_ = std::vector<Counter>(static_cast<size_t>(threads));
  parked_ = std::vector<Counter>(static_cast<size_t>(threads));
  can_fence_all();  // asks at once: the system answers slowly where there are threads already
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
  for (Share& share : shares_) {
    share.run.fetch_add(1, std::memory_order_seq_cst);
    share.run.notify_one();
  }
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::use(int threads) {
  check(threads >= 0 && threads <= size_, "no more threads are used than there are");
  active_.store(threads == 0 ? size_ : threads, std::memory_order_relaxed);
}

void ThreadPool::take_from(int owner, uint32_t run, int thread) {
  Share& share = shares_[static_cast<size_t>(owner)];
  uint64_t open = share.open.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(open >> 32) == run && static_cast<uint32_t>(open) > 0) {
    if (!share.open.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire))
      continue;
    // The run cannot end before this piece has, so the share may be read; behind the count below it
    // may be that of another run.
    share.call(share.context, thread, share.end - static_cast<int>(static_cast<uint32_t>(open)));
    finish_one(thread);
    open = share.open.load(std::memory_order_acquire);
  }
}

void ThreadPool::take_pieces(uint32_t run, int thread) {
  const int n = size();
  for (int i = 0; i < n; ++i) take_from((thread + i) % n, run, thread);
}

// Either the caller of run() sees this piece before it parks, or it is seen to park here.
void ThreadPool::finish_one(int thread) {
  std::atomic<uint32_t>& mine = finished_[static_cast<size_t>(thread)].value;
  if (thread == 0) {  // the caller of run() itself
    mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  mine.fetch_add(1, std::memory_order_seq_cst);
  if (caller_.waits.load(std::memory_order_seq_cst) == 0) return;
  if (finished() != caller_.waits_for.load(std::memory_order_relaxed)) return;
  caller_.wakes.fetch_add(1, std::memory_order_release);
  caller_.wakes.notify_one();
}

uint32_t ThreadPool::finished() const {
  uint32_t sum = 0;
  for (const Counter& of_thread : finished_) sum += of_thread.value.load(std::memory_order_seq_cst);
  return sum;
}

void ThreadPool::wait_for_all(uint32_t all) {
  if (may_spin() && spin_until([&] { return finished() == all; })) return;
  caller_.waits_for.store(all, std::memory_order_relaxed);
  caller_.waits.store(1, std::memory_order_seq_cst);
  for (;;) {
    const uint32_t wakes = caller_.wakes.load(std::memory_order_acquire);
    if (finished() == all) break;
    caller_.wakes.wait(wakes, std::memory_order_acquire);
  }
  caller_.waits.store(0, std::memory_order_relaxed);
}

void ThreadPool::run_erased(int pieces, Call call, void* context) {
#if !defined(NDEBUG)
  check(float_control_is_default(), "whoever computes has the default floating-point control word");
#endif
  const int threads = size();
  if (threads == 1 || pieces <= 1) {
    for (int piece = 0; piece < pieces; ++piece) call(context, 0, piece);
    return;
  }
  const uint32_t all = finished() + static_cast<uint32_t>(pieces);
  ++run_;
  // The caller's own share first. Whoever is told last has so been told of all: even if the caller
  // is put aside in here, or in a piece of its own, somebody finds every other piece.
  for (int t = 0; t < threads; ++t) {
    Share& share = shares_[static_cast<size_t>(t)];
    const auto begin = static_cast<int>(int64_t{pieces} * t / threads);
    const auto end = static_cast<int>(int64_t{pieces} * (t + 1) / threads);
    share.call = call;
    share.context = context;
    share.end = end;
    // The caller has taken its first piece already: a locked operation would wait until the shares
    // of all others have crossed to their cores.
    const int open = t == 0 && end > 0 ? end - 1 : end - begin;
    share.open.store((uint64_t{run_} << 32) | static_cast<uint32_t>(open),
                     std::memory_order_release);
    if (t == 0 || begin == end) continue;  // whose turn it is already; who is not needed
    share.run.store(run_, std::memory_order_release);
    meet_fence_all();
    if (parked_[static_cast<size_t>(t)].value.load(std::memory_order_relaxed) == 0) continue;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // notify_one() looks for who waits
    share.run.notify_one();
  }
  if (pieces >= threads) {
    call(context, 0, 0);
    finish_one(0);
  }
  take_pieces(run_, 0);
  wait_for_all(all);
}

// Until the thread's share is no longer of run `seen`: spinning first, then parked.
void ThreadPool::wait_for_run(uint32_t seen, int thread) {
  const std::atomic<uint32_t>& run = shares_[static_cast<size_t>(thread)].run;
  if (may_spin() && spin_until([&] { return run.load(std::memory_order_acquire) != seen; })) return;
  std::atomic<uint32_t>& parked = parked_[static_cast<size_t>(thread)].value;
  parked.store(1, std::memory_order_relaxed);
  fence_all();
  while (run.load(std::memory_order_acquire) == seen) run.wait(seen, std::memory_order_acquire);
  parked.store(0, std::memory_order_relaxed);
}

void ThreadPool::work(int thread) {
  set_float_control();
  Share& share = shares_[static_cast<size_t>(thread)];
  uint32_t seen = 0;
  for (;;) {
    wait_for_run(seen, thread);
    // In this order: with the last bump of `run` comes stop_, so it cannot be taken for a run.
    seen = share.run.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    take_pieces(seen, thread);
  }
}

}  // namespace paceline

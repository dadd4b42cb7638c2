// A pool of threads for work that comes in microsecond pieces.
//
// Between pieces the threads spin for a bounded time, because a futex wake costs 50-200 us where a
// spinning hand-over costs 0.3 us; when nothing comes they park, so an idle program uses no CPU.
// Every thread runs with the default floating-point control word (round to nearest, denormals
// kept).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace paceline {

// How many CPUs this process may use: affinity mask and container quota considered. At least 1.
int available_cpus();

// Puts the floating-point control word of the calling thread into the default state.
void set_float_control();
// Whether it is in that state.
bool float_control_is_default();

class ThreadPool {
 public:
  // threads >= 1, the calling thread included.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Threads that take part in a run.
  int size() const { return active_.load(std::memory_order_relaxed); }
  // From now on only so many take part: 1 to those that it was made with, 0 for all. Between runs.
  void use(int threads);

  // Calls body(thread, piece) once for every piece in [0, pieces), thread in [0, size()), and
  // returns when all are done. Threads take pieces as they come free, so one that the system has
  // put aside holds nobody up; which thread gets a piece must not matter to the result. Not
  // reentrant: body must not call run. Allocates nothing.
  template <class Body>
  void run(int pieces, Body&& body) {
    run_erased(
        pieces,
        [](void* context, int thread, int piece) {
          (*static_cast<std::remove_reference_t<Body>*>(context))(thread, piece);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Splits [0, n) into ranges of whole multiples of `grain`, a few for each thread, and calls
  // body(begin, end) for each. Ranges split outputs, never sums.
  template <class Body>
  void split(int64_t n, int64_t grain, Body&& body) {
    if (n <= 0) return;
    const int64_t grains = (n + grain - 1) / grain;
    const int64_t pieces = size() == 1 ? 1 : std::min<int64_t>(grains, kPiecesPerThread * size());
    run(static_cast<int>(pieces), [&](int, int piece) {
      const int64_t begin = grains * piece / pieces * grain;
      const int64_t end = grains * (piece + 1) / pieces * grain;
      body(begin, end < n ? end : n);
    });
  }

 private:
  static constexpr int kPiecesPerThread = 2;
  using Call = void (*)(void* context, int thread, int piece);

  void run_erased(int pieces, Call call, void* context);
  void work(int thread);
  // Takes pieces of run number `run` and works them off until none is left.
  void take_pieces(uint32_t run, int thread);
  bool may_spin() const { return size_ <= available_cpus_; }

  struct alignas(128) Counter {
    std::atomic<uint64_t> value{0};
  };
  struct alignas(128) Signal {
    std::atomic<uint32_t> value{0};
  };

  const int size_;
  std::atomic<int> active_;
  const int available_cpus_ = available_cpus();
  // What the current run calls; read only by whoever holds one of its pieces.
  Call call_ = nullptr;
  void* context_ = nullptr;
  int pieces_ = 0;
  // Number of the run in the upper half, pieces not yet taken in the lower: a thread that comes
  // late finds another run there and takes nothing from it unknowingly.
  Counter open_;
  Signal finished_;  // pieces done in the current run
  Signal started_;   // number of the run; workers wait for it to change
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;

  void stop_workers();
};

}  // namespace paceline

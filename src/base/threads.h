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
  // returns when all are done. Thread t is given the t-th share of the pieces in their order, so
  // that in runs over the same columns one thread finds what it wrote itself in its own cache: to
  // cross from one core to another costs 40 ns a line, and 200 ns where they share no cache. A
  // thread that is done takes pieces of others, so one that the system has put aside holds nobody
  // up; which thread gets a piece must not matter to the result. Not reentrant: body must not call
  // run. An exception that leaves body ends the program. Allocates nothing.
  template <class Body>
  void run(int pieces, Body&& body) {
    run_erased(
        pieces,
        [](void* context, int thread, int piece) noexcept {
          (*static_cast<std::remove_reference_t<Body>*>(context))(thread, piece);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Pieces that so many parts of equal work are best handed out in.
  int pieces(int64_t parts) const {
    return size() == 1 ? 1 : static_cast<int>(std::min<int64_t>(parts, kPiecesPerThread * size()));
  }

  // Splits [0, n) into ranges of whole multiples of `grain`, a few for each thread, and calls
  // body(begin, end) for each. Ranges split outputs, never sums.
  template <class Body>
  void split(int64_t n, int64_t grain, Body&& body) {
    if (n <= 0) return;
    const int64_t grains = (n + grain - 1) / grain;
    const int64_t pieces = this->pieces(grains);
    run(static_cast<int>(pieces), [&](int, int piece) {
      const int64_t begin = grains * piece / pieces * grain;
      const int64_t end = grains * (piece + 1) / pieces * grain;
      body(begin, end < n ? end : n);
    });
  }

 private:
  static constexpr int kPiecesPerThread = 2;
  using Call = void (*)(void* context, int thread, int piece) noexcept;

  void run_erased(int pieces, Call call, void* context);
  void work(int thread);
  // Works off this thread's pieces of run number `run`, then those of others that none has taken.
  void take_pieces(uint32_t run, int thread);
  void take_from(int owner, uint32_t run, int thread);
  void finish_one(int thread);
  void wait_for_run(uint32_t seen, int thread);
  void wait_for_all(uint32_t all);
  uint32_t finished() const;  // pieces, in all runs, modulo 2^32
  bool may_spin() const { return size_ <= available_cpus_; }

  // What a thread has to do. In one line, so that one transfer between cores starts a thread.
  struct alignas(128) Share {
    std::atomic<uint32_t> run{0};  // number of the run; the thread waits for it to change
    // That number in the upper half, pieces not yet taken in the lower: a thread that comes late
    // finds another run there and takes nothing from it unknowingly.
    std::atomic<uint64_t> open{0};
    // Read only by whoever holds a piece of the share.
    Call call = nullptr;
    void* context = nullptr;
    int end = 0;  // behind its last piece
  };
  // Written by its thread alone.
  struct alignas(128) Counter {
    std::atomic<uint32_t> value{0};
  };
  // The caller of run(), where it parks.
  struct alignas(128) Caller {
    std::atomic<uint32_t> waits{0};      // whether it does,
    std::atomic<uint32_t> waits_for{0};  // for how many finished pieces,
    std::atomic<uint32_t> wakes{0};      // and what it waits on
  };

  const int size_;
  std::atomic<int> active_;
  const int available_cpus_ = available_cpus();
  uint32_t run_ = 0;
  std::vector<Share> shares_;
  std::vector<Counter> finished_;  // pieces in all runs
  std::vector<Counter> parked_;    // whether the thread is: only then a wake is paid for
  Caller caller_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;

  void stop_workers();
};

}  // namespace paceline

// A pool of threads for work that comes in microsecond pieces.
//
// Between pieces the threads spin for a bounded time, because a futex wake costs 50-200 us where a
// spinning hand-over costs 0.3 us; when nothing comes they park, so an idle program uses no CPU.
// Every thread runs with the default floating-point control word (round to nearest, denormals
// kept).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
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

  int size() const { return size_; }

  // Calls body(thread) once for every thread in [0, size()), the caller being thread 0, and returns
  // when all are done. Not reentrant: body must not call run. Allocates nothing.
  template <class Body>
  void run(Body&& body) {
    run_erased([](void* context, int thread) { (*static_cast<Body*>(context))(thread); },
               const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Splits [0, n) into size() ranges of whole multiples of `grain` and calls body(begin, end) for
  // each that is not empty. Which thread gets which range never changes a result: ranges split
  // outputs, not sums.
  template <class Body>
  void split(int64_t n, int64_t grain, Body&& body) {
    const int64_t pieces = (n + grain - 1) / grain;
    if (size_ == 1 || pieces <= 1) {
      if (n > 0) body(int64_t{0}, n);
      return;
    }
    run([&](int thread) {
      const int64_t begin = pieces * thread / size_ * grain;
      const int64_t end = pieces * (thread + 1) / size_ * grain;
      if (begin < end) body(begin, end < n ? end : n);
    });
  }

 private:
  using Call = void (*)(void* context, int thread);

  void run_erased(Call call, void* context);
  void work(int thread);

  // One line for what the caller writes, one a thread for what that thread writes.
  struct alignas(128) Signal {
    std::atomic<uint32_t> value{0};
  };

  const int size_;
  const int available_cpus_ = available_cpus();
  Call call_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  Signal started_;  // counts runs; workers wait for it to move
  std::unique_ptr<Signal[]> finished_;  // per worker: the last run it has finished
  std::vector<std::thread> workers_;
};

}  // namespace paceline

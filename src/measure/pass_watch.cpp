#include "measure/pass_watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/threads.h"
#include "measure/statistics.h"

namespace paceline::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSpins = 2000;  // some microseconds

// Answers on the line from a thread of its own, as long as it lives.
class Partner {
 public:
  Partner() : thread_([this] { answer(); }) {}
  ~Partner() {
    over_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  // There and back. False where that took more than spinning: where both threads are on one CPU it
  // takes time slices. Then not beyond `end`.
  bool cross(Clock::time_point end) {
    bool at_once = true;
    line_.store(kThere, std::memory_order_release);
    for (int spins = 0; line_.load(std::memory_order_acquire) != kBack; ++spins) {
      if (spins < kSpins) continue;
      at_once = false;
      if (Clock::now() > end) break;
      std::this_thread::yield();
    }
    return at_once;
  }

 private:
  static constexpr int kBack = 0, kThere = 1;

  void answer() {
    int spins = 0;
    while (!over_.load(std::memory_order_relaxed)) {
      if (line_.load(std::memory_order_acquire) == kThere) {
        line_.store(kBack, std::memory_order_release);
        spins = 0;
      } else if (++spins > kSpins) {
        std::this_thread::yield();
      }
    }
  }

  alignas(128) std::atomic<int> line_{kBack};
  alignas(128) std::atomic<bool> over_{false};
  std::thread thread_;
};

// Seconds in which a cache line comes from the calling thread to one made for it, or back, in some
// milliseconds; none where the two never ran side by side, or the system has no thread.
std::optional<double> crossing_seconds() {
  constexpr int kTrips = 100;
  // The threads of the last pass park, so that the system puts the new one on a CPU of its own.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::vector<double> times;
  try {
    Partner partner;
    const auto end = Clock::now() + std::chrono::milliseconds(2);
    for (auto start = Clock::now(); start < end;) {
      bool at_once = true;
      for (int i = 0; at_once && i < kTrips; ++i) at_once = partner.cross(end);
      const auto now = Clock::now();
      const std::chrono::duration<double> spent = now - start;
      if (at_once) times.push_back(spent.count() / (2 * kTrips));
      start = now;
    }
  } catch (const std::system_error&) {  // the system has no thread
    return std::nullopt;
  }
  return times.empty() ? std::nullopt : std::optional(median(times));
}

}  // namespace

Result<PassWatch> PassWatch::make(const Engine& engine) {
  constexpr int kPosition = 256;
  auto passes = Passes::make(engine.model(), engine.context(), engine.cache_type(), kPosition,
                             Watched::kRows);
  if (!passes) return passes.error();
  return PassWatch(std::move(*passes), engine.threads() > 1 && available_cpus() > 1);
}

void PassWatch::look() {
  const double before = passes_.seconds(1);
  const double wide = passes_.seconds(Watched::kRows) + passes_.seconds(Watched::kRows);
  const double after = passes_.seconds(1);
  if (before + after > 0) ratios_.push_back(wide / (before + after));
  if (!side_by_side_) return;
  if (const auto crossing = crossing_seconds()) crossings_.push_back(*crossing);
}

std::optional<Watched> PassWatch::watched() const {
  if (ratios_.empty()) return std::nullopt;
  return summarize_looks(ratios_, crossings_);
}

Watched summarize_looks(std::vector<double> ratios, const std::vector<double>& crossings) {
  check(!ratios.empty(), "there was a look");
  std::sort(ratios.begin(), ratios.end());
  const size_t tenth = ratios.size() / 10;
  const auto from = ratios.begin() + static_cast<std::ptrdiff_t>(tenth);
  const auto to = ratios.end() - static_cast<std::ptrdiff_t>(tenth);
  return {.looks = static_cast<int>(ratios.size()),
          .mean = std::accumulate(from, to, 0.0) / static_cast<double>(to - from),
          .low = ratios[tenth],
          .high = ratios[ratios.size() - 1 - tenth],
          .crossing = crossings.empty() ? std::nullopt : std::optional(median(crossings))};
}

}  // namespace paceline::measure

#include "measure/pass_watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "measure/statistics.h"

namespace paceline::measure {
namespace {

// What the line holds once that is no longer `old`. Where two threads share one CPU, spinning alone
// would take a time slice for every crossing.
int wait_for_change(const std::atomic<int>& line, int old) {
  constexpr int kSpins = 2000;
  for (int spins = 0;; ++spins) {
    const int now = line.load(std::memory_order_acquire);
    if (now != old) return now;
    if (spins >= kSpins) std::this_thread::yield();
  }
}

}  // namespace

std::optional<double> crossing_seconds() {
  using Clock = std::chrono::steady_clock;
  constexpr int kTimes = 1000;
  constexpr int kThere = 1, kBack = 0, kEnd = 2;
  // The threads of the last pass park, so that the system puts the new one on a CPU of its own.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  alignas(128) std::atomic<int> line{kBack};
  std::thread other;
  try {
    other = std::thread([&line] {
      while (wait_for_change(line, kBack) == kThere) line.store(kBack, std::memory_order_release);
    });
  } catch (const std::system_error&) {
    return std::nullopt;
  }
  const auto cross = [&line] {
    line.store(kThere, std::memory_order_release);
    wait_for_change(line, kThere);
  };
  const auto warm = Clock::now() + std::chrono::microseconds(500);
  while (Clock::now() < warm) cross();
  const auto start = Clock::now();
  for (int i = 0; i < kTimes; ++i) cross();
  const std::chrono::duration<double> spent = Clock::now() - start;
  line.store(kEnd, std::memory_order_release);
  other.join();
  return spent.count() / (2 * kTimes);
}

Result<PassWatch> PassWatch::make(const Engine& engine) {
  constexpr int kPosition = 256;
  auto passes = Passes::make(engine.model(), engine.context(), engine.cache_type(), kPosition,
                             Watched::kRows);
  if (!passes) return passes.error();
  return PassWatch(std::move(*passes), engine.threads() > 1);
}

void PassWatch::look() {
  const double before = passes_.seconds(1);
  const double wide = passes_.seconds(Watched::kRows) + passes_.seconds(Watched::kRows);
  const double after = passes_.seconds(1);
  if (before + after > 0) ratios_.push_back(wide / (before + after));
  if (!threads_) return;
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
  return {.looks = static_cast<int>(ratios.size()),
          .mean = std::accumulate(ratios.begin(), ratios.end(), 0.0) /
                  static_cast<double>(ratios.size()),
          .low = ratios[tenth],
          .high = ratios[ratios.size() - 1 - tenth],
          .crossing = crossings.empty() ? std::nullopt : std::optional(median(crossings))};
}

}  // namespace paceline::measure

#include "measure/machine.h"

#include <gtest/gtest.h>

#include <ctime>

namespace paceline::measure {
namespace {

TEST(CpuTimes, AddUpOverTheCpusThatCount) {
  constexpr std::string_view kStat =
      "cpu  111 222 333 444 5 6 7 8 0 0\n"
      "cpu0 10 20 30 400 5 1 2 7 3 0\n"
      "cpu1 1 2 3 4 5 6 7 8 0 0\n"
      "intr 12345\n";
  const CpuTimes first = read_cpu_times(kStat, [](int cpu) { return cpu == 0; });
  EXPECT_EQ(first.busy, 63u);   // user, nice, system, irq, softirq
  EXPECT_EQ(first.idle, 405u);  // idle, iowait
  EXPECT_EQ(first.steal, 7u);
  const CpuTimes both = read_cpu_times(kStat, [](int) { return true; });
  EXPECT_EQ(both.busy, 63u + 19u);  // the line of the sum is not one of them
  EXPECT_EQ(both.steal, 15u);
}

TEST(CpuTimes, LinesOfAnotherFormCountForNothing) {
  for (const std::string_view stat : {"", "cpu", "cpu0", "cpu0 1 2 3", "cpux 1 2 3 4 5 6 7 8"}) {
    const CpuTimes times = read_cpu_times(stat, [](int) { return true; });
    EXPECT_EQ(times.busy + times.idle + times.steal, 0u) << stat;
  }
}

TEST(MachineWatch, OwnWorkIsNotThatOfOthers) {
  const MachineWatch watch;
  const std::clock_t own_start = std::clock();
  volatile uint64_t sum = 0;
  while (watch.use().seconds < 0.5)
    for (int i = 0; i < 100000; ++i) sum = sum + static_cast<uint64_t>(i);
  const MachineUse use = watch.use();
  const double own = static_cast<double>(std::clock() - own_start) / CLOCKS_PER_SEC / use.seconds;
  EXPECT_GE(use.steal, 0);
  EXPECT_LE(use.steal, 1);
  EXPECT_GE(use.others, 0);
  // Both together are no more than there is; ticks are a hundredth of a second long.
  EXPECT_LE(use.others + own, this_machine().cpus + 0.15);
}

}  // namespace
}  // namespace paceline::measure

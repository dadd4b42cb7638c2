// The conditions of a measurement: what a report says about the machine.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline::measure {

struct Machine {
  std::string cpu;                  // "AMD EPYC 7B13"; "" where the system does not say
  int cpus = 0;                     // CPUs that this process may use
  std::array<double, 3> load = {};  // runnable tasks over 1, 5 and 15 minutes
};

// As it is now.
Machine this_machine();

// How CPUs spent their time since the machine started, in ticks of the system's clock.
struct CpuTimes {
  uint64_t busy = 0;   // at work for this machine
  uint64_t idle = 0;   // nothing to do, or waiting for a disk
  uint64_t steal = 0;  // had work, but the host ran something else
};
// Of a text in the form of /proc/stat, the CPUs for which `counts` says so; zeros where there are
// none.
template <class Counts>
CpuTimes read_cpu_times(std::string_view stat, Counts counts);
// One line, "cpu3 1 2 3 ...", added to `times`; its number, or -1 for a line of another kind.
int read_cpu_line(std::string_view line, CpuTimes& times);

// What else went on beside a measurement, on the CPUs that this process may use.
struct MachineUse {
  double seconds = 0;
  double load_before = 0;  // runnable tasks over the minute before
  double load_after = 0;   // and over the last minute of it
  // 0 where less than a tenth of a second has passed, or the system does not say:
  double steal = 0;   // share of the time that the host took
  double others = 0;  // CPUs that other processes kept busy
};

// From its making to use().
class MachineWatch {
 public:
  MachineWatch();
  MachineUse use() const;

 private:
  struct Snapshot {
    std::chrono::steady_clock::time_point at;
    double load = 0;
    CpuTimes cpus;
    double own_seconds = 0;  // of this process, all threads
  };
  static Snapshot now();

  Snapshot start_;
};

template <class Counts>
CpuTimes read_cpu_times(std::string_view stat, Counts counts) {
  CpuTimes sum;
  while (!stat.empty()) {
    const size_t end = std::min(stat.find('\n'), stat.size());
    CpuTimes one;
    if (const int cpu = read_cpu_line(stat.substr(0, end), one); cpu >= 0 && counts(cpu)) {
      sum.busy += one.busy;
      sum.idle += one.idle;
      sum.steal += one.steal;
    }
    stat.remove_prefix(std::min(end + 1, stat.size()));
  }
  return sum;
}

}  // namespace paceline::measure

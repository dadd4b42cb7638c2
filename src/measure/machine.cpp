#include "measure/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/threads.h"

namespace paceline::measure {
namespace {

// The first "model name" of /proc/cpuinfo.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

std::string stat_text() {
  std::ifstream file("/proc/stat");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.cpu = cpu_name();
  machine.cpus = available_cpus();
  getloadavg(machine.load.data(), static_cast<int>(machine.load.size()));
  return machine;
}

int read_cpu_line(std::string_view line, CpuTimes& times) {
  // cpuN user nice system idle iowait irq softirq steal; what follows is counted in user already
  constexpr size_t kFields = 8;
  if (!line.starts_with("cpu")) return -1;
  const char* at = line.data() + 3;
  const char* const end = line.data() + line.size();
  int cpu = -1;
  const auto number = std::from_chars(at, end, cpu);
  if (number.ec != std::errc()) return -1;  // "cpu ", the sum of all
  at = number.ptr;
  std::array<uint64_t, kFields> fields = {};
  for (uint64_t& field : fields) {
    while (at < end && *at == ' ') ++at;
    const auto read = std::from_chars(at, end, field);
    if (read.ec != std::errc()) return -1;
    at = read.ptr;
  }
  times.busy = fields[0] + fields[1] + fields[2] + fields[5] + fields[6];
  times.idle = fields[3] + fields[4];
  times.steal = fields[7];
  return cpu;
}

MachineWatch::Snapshot MachineWatch::now() {
  Snapshot taken;
  taken.at = std::chrono::steady_clock::now();
  getloadavg(&taken.load, 1);
  cpu_set_t ours;
  CPU_ZERO(&ours);
  const bool known = sched_getaffinity(0, sizeof ours, &ours) == 0;
  taken.cpus = read_cpu_times(stat_text(), [&](int cpu) {
    return !known || (cpu < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(cpu), &ours));
  });
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  taken.own_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  return taken;
}

MachineWatch::MachineWatch() : start_(now()) {}

MachineUse MachineWatch::use() const {
  const Snapshot end = now();
  MachineUse use;
  use.seconds = std::chrono::duration<double>(end.at - start_.at).count();
  use.load_before = start_.load;
  use.load_after = end.load;
  const auto busy = static_cast<double>(end.cpus.busy - start_.cpus.busy);
  const auto idle = static_cast<double>(end.cpus.idle - start_.cpus.idle);
  const auto steal = static_cast<double>(end.cpus.steal - start_.cpus.steal);
  const double ticks = busy + idle + steal;
  constexpr double kShortest = 0.1;  // ticks are a hundredth of a second long
  if (ticks <= 0 || use.seconds < kShortest) return use;
  use.steal = steal / ticks;
  const double busy_seconds = busy / static_cast<double>(sysconf(_SC_CLK_TCK));
  use.others = std::max(0.0, busy_seconds - (end.own_seconds - start_.own_seconds)) / use.seconds;
  return use;
}

}  // namespace paceline::measure

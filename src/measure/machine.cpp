#include "measure/machine.h"

#include <cstdlib>
#include <fstream>

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

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.cpu = cpu_name();
  machine.cpus = available_cpus();
  getloadavg(machine.load.data(), static_cast<int>(machine.load.size()));
  return machine;
}

}  // namespace paceline::measure

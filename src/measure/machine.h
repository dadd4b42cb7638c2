// The conditions of a measurement: what a report says about the machine.
#pragma once

#include <array>
#include <string>

namespace paceline::measure {

struct Machine {
  std::string cpu;                  // "AMD EPYC 7B13"; "" where the system does not say
  int cpus = 0;                     // CPUs that this process may use
  std::array<double, 3> load = {};  // runnable tasks over 1, 5 and 15 minutes
};

// As it is now.
Machine this_machine();

}  // namespace paceline::measure

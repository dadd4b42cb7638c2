// Whether a bench can be believed: fields of its report, and sentences for people.
#pragma once

#include "apps/json_file.h"
#include "measure/hygiene.h"

namespace paceline::apps {

// `noisy` and `noisy_because` from the machine alone: before anything is measured.
void add_machine_checks(const measure::MachineUse& use, Json& report);
// The same from the machine and the numbers, and what else ran; and the arms that did the same.
void add_bench_checks(const measure::BenchResult& result, const measure::MachineUse& use,
                      Json& report);
// On standard output; `report` is complete.
void print_bench_checks(const Json& report);
// Whether such a report is good enough for --strict; else says why not, on standard error.
bool passes_strictly(const Json& report);

}  // namespace paceline::apps

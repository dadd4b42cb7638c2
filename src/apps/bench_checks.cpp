#include "apps/bench_checks.h"

#include <cstdio>

#include "apps/report_fields.h"
#include "apps/say.h"
#include "apps/spec_flags.h"

namespace paceline::apps {
namespace {

void add_noise(const std::vector<std::string>& reasons, Json& report) {
  report["noisy"] = !reasons.empty();
  report["noisy_because"] = reasons;
}

}  // namespace

void add_machine_checks(const measure::MachineUse& use, Json& report) {
  add_noise(noise_of_machine(use, report["cpus"].get<int>()), report);
}

void add_bench_checks(const measure::BenchResult& result, const measure::MachineUse& use,
                      Json& report) {
  report["machine_use"] = Json{{"seconds", use.seconds},
                               {"load_before", use.load_before},
                               {"load_after", use.load_after},
                               {"steal", use.steal},
                               {"others", use.others}};
  auto reasons = noise_of_machine(use, report["cpus"].get<int>());
  for (std::string& reason : noise_of_result(result)) reasons.push_back(std::move(reason));
  add_noise(reasons, report);
  Json alike = Json::array();
  for (const auto& [a, b] : arms_alike(result.arms))
    alike.push_back(Json::array({shape_label(result.arms[static_cast<size_t>(a)].shape),
                                 shape_label(result.arms[static_cast<size_t>(b)].shape)}));
  report["arms_alike"] = std::move(alike);
}

void print_bench_checks(const Json& report) {
  const Json& use = at(report, "machine_use");
  say("machine: load {} before and {} after, {} stolen, {} CPUs busy with other things\n",
      shown(number(at(use, "load_before")), 2), shown(number(at(use, "load_after")), 2),
      percent(number(at(use, "steal")), 1), shown(number(at(use, "others")), 2));
  for (const Json& reason : at(report, "noisy_because")) say("noisy: {}\n", text_of(reason));
  for (const Json& pair : at(report, "arms_alike"))
    say("depths {} and {} did the same, count for count: comparing them shows nothing\n",
        text_of(at(pair, 0)), text_of(at(pair, 1)));
}

bool passes_strictly(const Json& report) {
  std::string reasons;
  const auto add = [&](const std::string& reason) {
    reasons += (reasons.empty() ? "" : "; ") + reason;
  };
  for (const Json& reason : at(report, "noisy_because")) add(text_of(reason));
  for (const Json& pair : at(report, "arms_alike"))
    add("depths " + text_of(at(pair, 0)) + " and " + text_of(at(pair, 1)) + " did the same");
  if (reasons.empty()) return true;
  say(stderr, "paceline bench: refused by --strict: {}\n", reasons);
  return false;
}

}  // namespace paceline::apps

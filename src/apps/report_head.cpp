#include "apps/report_head.h"

#include "apps/values.h"
#include "base/sha256.h"
#include "base/version.h"
#include "io/checkpoint.h"
#include "io/weight_file.h"
#include "measure/machine.h"

namespace paceline::apps {

std::string binary_sha256() {
  const auto binary = open_weight_file("/proc/self/exe", "this program");
  return binary ? cached_sha256(*binary) : "";
}

Json sha256_of_model(const std::filesystem::path& model) {
  const auto checkpoint = Checkpoint::open(model);
  if (!checkpoint) return nullptr;
  return checkpoint->trunk_sha256();
}

std::string sha256_of_prompts(const std::vector<Prompt>& prompts) {
  Sha256 sum;
  for (const Prompt& prompt : prompts) {
    const std::string line = join_ids(prompt.ids) + "\n";
    sum.update(std::as_bytes(std::span(line)));
  }
  return sum.finish();
}

Json report_head(const std::string& command) {
  const measure::Machine machine = measure::this_machine();
  Json head{{"report", kReportVersion},
            {"command", command},
            {"version", version()},
            {"commit", commit()},
            {"binary_sha256", binary_sha256()}};
  for (const char* name : {"model", "model_sha256", "head_sha256", "prompts_sha256", "numerics",
                           "kernels", "instruction_set", "threads", "page_size"})
    head[name] = nullptr;
  head["cpu"] = machine.cpu;
  head["cpus"] = machine.cpus;
  head["machine_load"] = machine.load;
  head["seed"] = nullptr;
  return head;
}

}  // namespace paceline::apps

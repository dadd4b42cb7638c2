#include "apps/fairness.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/report_fields.h"

namespace paceline::apps {
namespace {

struct Condition {
  const char* field;
  const char* why;
};

constexpr std::array kConditions = {
    Condition{"model_sha256", "another trunk"},
    Condition{"head_sha256", "another draft head, or none: stock against patched"},
    Condition{"store_sha256", "another store of n-grams, or none"},
    Condition{"prompts_sha256", "other prompts"},
    Condition{"text_sha256", "another text"},
    Condition{"dump_sha256", "another dump"},
    Condition{"cpu", "another machine"},
    Condition{"cpus", "another machine"},
    Condition{"page_size", "other pages of memory"},
    Condition{"threads", "other threads"},
    Condition{"numerics", "other numerics"},
    Condition{"kernels", "other kernels"},
    Condition{"instruction_set", "another instruction set"},
    Condition{"weights", "other weights"},
    Condition{"cache", "another cache"},
    Condition{"sampling", "other sampling"},
    Condition{"seed", "another seed"},
    Condition{"max_tokens", "other lengths"},
    Condition{"ignore_eos", "other ends"},
    Condition{"allow_inexact", "the gate overruled in one of them"},
};

// Long digests are told by their beginning.
std::string brief(const Json& value) {
  constexpr size_t kShown = 24;
  constexpr size_t kPart = 12;
  const std::string text = text_of(value);
  return text.size() > kShown && text.find(' ') == std::string::npos ? text.substr(0, kPart) + "..."
                                                                     : text;
}

}  // namespace

std::vector<Unfair> unfair_conditions(const std::vector<Json>& reports) {
  std::vector<Unfair> found;
  for (const Condition& condition : kConditions) {
    Unfair unfair{condition.field, condition.why, {}};
    for (const Json& report : reports) unfair.values.push_back(at(report, condition.field));
    const bool same = std::all_of(unfair.values.begin(), unfair.values.end(),
                                  [&](const Json& value) { return value == unfair.values[0]; });
    if (!same) found.push_back(std::move(unfair));
  }
  return found;
}

std::string listed(const std::vector<Unfair>& conditions) {
  std::string text;
  for (const Unfair& unfair : conditions) {
    std::string values;
    for (const Json& value : unfair.values)
      values += (values.empty() ? "" : " and ") + brief(value);
    text +=
        fmt::format("{}{} ({}: {})", text.empty() ? "" : ", ", unfair.field, unfair.why, values);
  }
  return text;
}

}  // namespace paceline::apps

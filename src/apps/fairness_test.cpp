#include "apps/fairness.h"

#include <gtest/gtest.h>

namespace paceline::apps {
namespace {

Json report() {
  return Json{{"command", "bench"},
              {"report", 2},
              {"commit", "aaaa"},
              {"model_sha256", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
              {"head_sha256", nullptr},
              {"prompts_sha256", "77"},
              {"cpu", "AMD EPYC"},
              {"threads", 2},
              {"numerics", "portable"},
              {"instruction_set", "avx2"},
              {"sampling", {{"temperature", 0}}}};
}

TEST(Fairness, WhatOneWantsToCompareMayDiffer) {
  Json other = report();
  other["commit"] = "bbbb";
  other["binary_sha256"] = "1";
  other["drafter"] = "lookup";
  other["machine_load"] = {3.0, 2.0, 1.0};
  EXPECT_TRUE(unfair_conditions({report(), other}).empty());
}

TEST(Fairness, EveryConditionOfAComparisonIsNamed) {
  for (const auto& [field, value] :
       {std::pair("model_sha256", Json("ff")), std::pair("head_sha256", Json("12")),
        std::pair("store_sha256", Json("34")), std::pair("prompts_sha256", Json("78")),
        std::pair("cpu", Json("Xeon")), std::pair("threads", Json(4)),
        std::pair("numerics", Json("amx")), std::pair("instruction_set", Json("scalar")),
        std::pair("kernels", Json("wide")), std::pair("sampling", Json{{"temperature", 1}}),
        std::pair("seed", Json(2))}) {
    Json other = report();
    other[field] = value;
    const auto unfair = unfair_conditions({report(), report(), other});
    ASSERT_EQ(unfair.size(), 1u) << field;
    EXPECT_EQ(unfair[0].field, field);
    EXPECT_EQ(unfair[0].values.size(), 3u);
    EXPECT_NE(listed(unfair).find(field), std::string::npos);
  }
}

TEST(Fairness, ASentenceShortensDigests) {
  Json other = report();
  other["model_sha256"] = "ff";
  other["threads"] = 4;
  EXPECT_EQ(listed(unfair_conditions({report(), other})),
            "model_sha256 (another trunk: 0123456789ab... and ff), threads (other threads: 2 and "
            "4)");
}

}  // namespace
}  // namespace paceline::apps

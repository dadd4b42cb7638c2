// Engines of the goldens with a draft head of random weights, for tests.
#pragma once

#include "base/check.h"
#include "engine/engine.h"
#include "models/golden_support.h"
#include "models/head_support.h"

namespace paceline {

// The golden of this name on two threads, with a head of two modules.
inline Engine headed_golden(const char* name) {
  auto engine = Engine::open(goldens() / name, {.threads = 2});
  check(engine.has_value(), "a golden opens");
  HeadConfig config;
  config.modules = 2;
  check(engine->use_head(random_head(engine->model(), config, 1)).has_value(), "a head fits");
  return std::move(*engine);
}

}  // namespace paceline

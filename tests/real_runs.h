// What tests on a real model share: opened, or the test ends here; and run to its end.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace paceline {

inline Engine open_real_model(const std::filesystem::path& path, EngineOptions options) {
  options.use_head = !options.head.empty();  // none that happens to lie on this machine
  auto engine = Engine::open(path, options);
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    std::exit(1);
  }
  return std::move(*engine);
}

// The ids that a request writes; a failure where it cannot.
inline std::vector<TokenId> generate(const Engine& engine, const Request& request) {
  auto generation = engine.start(request);
  if (!generation) {
    ADD_FAILURE() << generation.error().message;
    return {};
  }
  while (!generation->done()) {
    if (const auto pieces = generation->step(); !pieces) {
      ADD_FAILURE() << pieces.error().message;
      break;
    }
  }
  std::vector<TokenId> ids;
  for (const EmittedToken& token : generation->tokens()) ids.push_back(token.id);
  return ids;
}

}  // namespace paceline

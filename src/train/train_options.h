// How a head is trained.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"
#include "train/choose.h"
#include "train/loss.h"
#include "train/net.h"
#include "train/optimiser.h"
#include "train/parameters.h"

namespace paceline::train {

inline constexpr int kMostDepths = 8;

struct TrainOptions {
  int depths = 4;
  double beta = 0.6;  // depth s weighs beta^(s-1)
  double dpace = -1;  // smoothing of weigh_by_length, which then weighs in place of beta; < 0: off
  Mask mask = Mask::Served;
  Targets targets = Targets::Soft;
  std::vector<Part> freeze = {};
  // Share of the run in which depth 1 alone is trained; then all depths are.
  double first_depth_share = 0.3;

  float rate = 1e-3f;
  OptimiserOptions optimiser = {};
  int64_t warmup = 50;        // steps
  int batch = 8;              // pieces of streams a step
  int rows_at_a_time = 1024;  // that stand in memory; a step's gradient is summed over them
  uint64_t seed = 1;

  // What ends the run, whichever comes first; 0: does not. One of the two is given.
  int64_t steps = 0;
  double minutes = 0;

  int64_t evaluate_every = 0;        // steps; 0: about sixteen times a run
  int64_t evaluation_tokens = 6000;  // of held-out answers that are walked
  int flat_evaluations = 6;          // without a better one that end the run
  CacheType cache = CacheType::F16;
  Products products = Products::Auto;
};

}  // namespace paceline::train

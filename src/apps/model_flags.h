// MODEL and the flags that say how it is run: shared by every command that loads one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/flags.h"
#include "apps/json_file.h"
#include "engine/engine.h"

namespace paceline::apps {

// Which draft head is loaded beside a model.
struct HeadChoice {
  bool load = false;
  std::string file = {};  // empty: the one that is found
};

// Which store of n-grams.
struct StoreChoice {
  bool load = false;
  std::string file = {};  // empty: the one that is found
  bool learn = false;
};

struct ModelFlags {
  std::string model;
  int threads = 0;    // 0: the CPUs that this process may use
  int weights = 0;    // index into native, bf16, f32
  int cache = -1;     // index into f16, bf16, f32; -1: what goes with the weights
  int context = 0;    // 0: what the checkpoint was made for
  int kernels = 0;    // index into exact, wide
  int numerics = -1;  // index into portable, amx; -1: what the machine has
  uint64_t seed = 1;  // of sampling; reported

  void add(Flags& flags);
  // Loads the model, with a line of progress on a terminal.
  Result<Engine> open(const HeadChoice& head = {}, const StoreChoice& store = {}) const;
};

// What is worth a warning about the checkpoint, a line each on standard error. Called when all
// input is checked: bad input gets one line and no more.
void print_warnings(const Engine& engine);

// The head of a report (apps/report_head.h), with what a loaded model adds to it.
Json report_header(const std::string& command, const ModelFlags& flags, const Engine& engine,
                   const std::string& drafter);

}  // namespace paceline::apps

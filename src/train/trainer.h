// A run: steps over the training rows, held-out evaluation on the serving path in between, the best
// head kept on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/head_file.h"
#include "models/model.h"
#include "train/data.h"
#include "train/evaluate.h"
#include "train/history.h"
#include "train/train_options.h"

namespace paceline::train {

struct TrainInputs {
  const Model* model = nullptr;
  const TrainingData* data = nullptr;
  HeadTensors start;          // with its config filled in, but for `depths` and `trainer`
  std::filesystem::path out;  // where the best head stands; OUT.run holds the run while it goes on
  bool resume = false;        // take up what OUT.run holds
  bool in_place = false;      // `start` was read from OUT, which the run writes over
  std::string head_sha256 = {};  // of the file that `start` was read from; "" of a new head
};

struct TrainProgress {
  int64_t step = 0;
  double share = 0;  // of the run
  double loss = 0;   // of the last steps
  double position_depths_per_second = 0;
  double seconds_left = 0;
  const HistoryEntry* last = nullptr;  // the evaluation before
};

struct TrainHooks {
  std::function<bool()> stop = {};  // looked at between steps
  std::function<void(const TrainProgress&)> progress = {};
  std::function<void(const HistoryEntry&, bool best)> evaluated = {};
  std::function<void(const std::string&)> warn = {};
  std::function<void(const std::string&)> say = {};  // one line of what was found at the start
};

enum class TrainEnd { Done, Flat, NotFinite, Interrupted };
const char* to_string(TrainEnd end);  // "done"

struct TrainReport {
  TrainEnd end = TrainEnd::Done;
  int64_t steps = 0;
  int64_t positions = 0;  // position-depths
  int64_t skipped = 0;    // steps without a target, or with a gradient that was not finite
  double seconds = 0;
  HistoryEntry baseline, best;
  std::vector<HistoryEntry> history;
  std::vector<RoundCounts> by_length;  // of the best head; index: into kLengths
  std::vector<double> distance;        // training against serving at the start; see evaluate.h
  int64_t drafts_compared = 0;         // the engine's own, with this head, at the start
  std::string table;                   // "avx512-bf16"
};

// Whether such a run could begin: dump, head, trunk, options and, where it is resumed, what OUT.run
// holds belong together.
Result<void> check_inputs(const TrainInputs& inputs, const TrainOptions& options);

// Trains and leaves the best head in inputs.out, the one that the run began with where none was
// better. Refused: what check_inputs() refuses; a start whose rounds, walked with
// the head as it is in memory and as it is read from its file, are not the same; drafts in the dump
// that the engine made with this head and that are not made again; training that computes something
// else than serving. An interrupt is no error: the run can be resumed.
Result<TrainReport> train(const TrainInputs& inputs, const TrainOptions& options,
                          const TrainHooks& hooks);

}  // namespace paceline::train

// A head judged as it is served: through the loader, the head drafter and replay.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/dump.h"
#include "models/draft_head.h"
#include "models/model.h"
#include "spec/counts.h"
#include "train/data.h"
#include "train/net.h"

namespace paceline::train {

// Which streams are walked, and how.
struct EvaluationPlan {
  const Dump* dump = nullptr;
  std::vector<int> streams;  // each up to where a short cycle begins
  int depth = 4;             // K: drafts a round
  CacheType cache = CacheType::F16;
};
// The first of the data's evaluation streams that have so many tokens behind their prompts
// together.
EvaluationPlan plan_evaluation(const TrainingData& data, int64_t tokens, int depth,
                               CacheType cache);

// All streams of another dump. BadUsage, naming a stream, where the training dump has its id or its
// prompt (of a given text: all of it), and where none has an answer. Not of use for a file of
// records, which knows neither.
Result<EvaluationPlan> plan_judgement(const Dump& training, const Dump& judge, int depth,
                                      CacheType cache);

// Rounds in which depths 1 .. d stood, over rounds.
std::vector<double> joint_acceptance(const RoundCounts& counts);

// Answers of so many tokens, up to the next bucket's.
inline constexpr int kLengths[] = {0, 64, 128, 192};

struct Evaluation {
  RoundCounts counts;
  std::vector<RoundCounts> by_length;  // index: into kLengths
  std::vector<RoundCounts> by_stream;  // index: into the plan's streams
  // Rounds in which depths 1 .. d stood, over rounds; and over those in which d - 1 stood.
  std::vector<double> joint() const;
  std::vector<double> conditional() const;
  double expected() const;  // E: the sum of joint()
};

// Rounds walked with the head's own drafts over the recorded streams. What make_head says, or
// Interrupted.
Result<Evaluation> evaluate(const Model& model, const HeadTensors& head, const EvaluationPlan& plan,
                            const std::function<bool()>& stop = {});

// How far what training computes lies from what serving computes, for the same rows and the text's
// own tokens: |difference| / |served|, the median over rows, a depth each.
struct Distance {
  std::vector<double> median;
  int rows = 0;
};
// Rows of one piece, as the net computed them last (forward over `batch`, which holds this piece
// alone). The net's mask is that of serving.
Result<Distance> distance_to_serving(const HeadNet& net, const NetShape& shape,
                                     const NetBatch& batch, std::span<const TokenId> tokens,
                                     const DraftHead& head, CacheType cache);

// The head in the file against the one that was trained, both loaded by the trunk: hiddens byte for
// byte and best words at every depth, over the first rows of a stream. The error names the place.
Result<void> compare_with_file(const Model& model, const HeadTensors& trained,
                               const std::filesystem::path& file, const EvaluationPlan& plan);

}  // namespace paceline::train

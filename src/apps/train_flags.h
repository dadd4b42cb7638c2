// Flags of `train`: how a head is trained, and what a new one is like.
#pragma once

#include <optional>
#include <string>

#include "apps/flags.h"
#include "base/result.h"
#include "base/tap.h"
#include "train/data.h"
#include "train/train_options.h"

namespace paceline::apps {

struct TrainFlags {
  std::optional<std::string> dump;
  std::optional<std::string> out;
  std::optional<std::string> head;
  bool fresh = false;
  bool resume = false;
  bool promote = false;
  std::optional<std::string> judge;  // dump that promotion is judged over
  // Of a new head; what was not given is -1 until finish(), but for the tap, which is then the
  // dump's, and for the words of a head that is fine-tuned, which are then its own.
  int modules = -1;
  int shortlist = -1;
  int tap = -1;  // index into after, before
  bool skips_prompts = false;
  train::DataOptions data;
  train::TrainOptions train;

  void add(Flags& flags);
  // Behind parse: what belongs together, what can be written, and fields that flags do not bind to.
  Result<void> finish(const std::string& model);
  // Where the run writes its best head: HEAD, or beside it while it is not known whether that is to
  // be replaced.
  std::string trained_file() const { return promote ? *out + ".candidate" : *out; }

 private:
  int mask_ = 0;
  int targets_ = 0;
  int products_ = 0;
  int steps_ = 0;
  int every_ = 0;
  int warmup_ = 50;
  int evaluation_tokens_ = 6000;
  double rate_ = 1e-3;
  double average_ = 0;
  double decay_ = 0.01;
  double clip_ = 1;
};

}  // namespace paceline::apps

// The trunk's own answers to prompts, many sequences at once, recorded in the order of the prompts.
#pragma once

#include <functional>
#include <vector>

#include "apps/prompt_flags.h"
#include "apps/stream_recorder.h"
#include "engine/engine.h"
#include "io/dump_writer.h"

namespace paceline::apps {

struct CollectProgress {
  size_t skipped = 0;     // streams that the dump had,
  size_t written = 0;     // streams that were added,
  size_t total = 0;       // of so many
  int64_t positions = 0;  // written by this run
  int64_t tokens = 0;     // generated, or given, of streams under way too
  int64_t own_top1 = 0;   // tokens behind a prompt that were the trunk's first choice,
  int64_t scored = 0;     // of so many in streams written
  double seconds = 0;
  int64_t cyclic = 0;  // streams written that end in a short cycle

  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
  double own_top1_share() const {
    return scored > 0 ? static_cast<double>(own_top1) / static_cast<double>(scored) : 0;
  }
  void count(const NewStream& stream);  // as written
};

inline constexpr int kProbeEvery = 64;
inline constexpr int kProbeDepth = 4;

// Sequences of a lane that is worth a thread of its own: with fewer, what each lane reads of the
// weights costs more than lanes save by waiting for nobody.
inline constexpr int kLaneBatch = 32;

struct CollectAnswers {
  int batch = kLaneBatch;  // sequences side by side
  RowKind rows;
  // Drafts of the head that are recorded with an answer, a round: of all answers or, as probes, of
  // one in kProbeEvery, by its id.
  int depth = 0;
  bool probes = false;
  std::function<void(const CollectProgress&)> progress;
  std::function<bool()> stop;  // looked at between steps; what is not written then is lost
};

// Those that the dump has no stream of. One of the same id that was made of other tokens is
// refused.
Result<std::vector<const Prompt*>> work_left(const std::vector<Prompt>& prompts,
                                             const DumpWriter& dump);

// request: all of a request but its prompt and seed, which is made from `seed` and the prompt's id,
// so that a text does not depend on what ran before or beside it.
Result<CollectProgress> collect_answers(const Engine& engine, const std::vector<Prompt>& prompts,
                                        const Request& request, uint64_t seed,
                                        const CollectAnswers& options, DumpWriter& dump);

}  // namespace paceline::apps

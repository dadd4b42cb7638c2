// What an engine holds. Inside the box only.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/beginning.h"
#include "engine/engine.h"
#include "engine/prefix_cache.h"
#include "engine/request.h"
#include "kernels/choose.h"
#include "spec/cost_tracker.h"
#include "spec/head_drafter.h"
#include "spec/store_builder.h"

namespace paceline {

// Rows of a pass at most, over all of its sequences; what is more is read in another pass.
inline constexpr int kPassRows = 128;
inline constexpr int64_t kPrefixCacheBytes = int64_t{256} << 20;

// What a sequence begins with: the trunk's state and, where a head drafts, the head's.
struct Begun {
  std::unique_ptr<SequenceState> trunk;
  std::unique_ptr<HeadState> head;
};

struct MadeDrafter {
  std::unique_ptr<Drafter> drafter;
  HeadDrafter* head = nullptr;  // the same, or a part of it, where a head drafts
};

struct Engine::State {
  // States for a sequence, with as much of the prompt in them as an earlier one has read, or for a
  // row sink as its beginning holds.
  Result<Begun> begin_sequence(const Request& request, int budget, bool with_head);
  // Whoever drafts has a permit: without one the drafter is silent and the run plain. begun: of the
  // head, where one drafts. capacity: tokens of prompt and output.
  Result<MadeDrafter> make_drafter(DrafterKind kind, const Request& request,
                                   const DraftPermit* permit, std::unique_ptr<HeadState> begun,
                                   int capacity) const;
  Result<std::unique_ptr<HeadDrafter>> make_head_drafter(std::unique_ptr<HeadState> begun,
                                                         int capacity) const;
  RequestLimits limits() const;
  // What drafts for a request when the gate lets it.
  DrafterKind drafter_for(const Request& request) const;
  bool has_head_in(DrafterKind kind) const;
  // asked: the file, or none named.
  Result<void> open_head(const Checkpoint& checkpoint, const std::filesystem::path& asked);
  void warn_of_another_trunk(const Checkpoint& checkpoint, const std::string& name);
  Result<void> take_head(const HeadTensors& tensors, HeadInUse about);
  Result<void> take_pass_memory();
  std::vector<TokenId> probe_ids() const;  // the text that probes walk over

  // What draws tokens: the table that PACELINE_ISA names; the trunk's own choice of it was checked.
  const KernelTable* table = choose_kernel_table().value_or(kernel_tables().back());
  std::unique_ptr<Model> model;
  std::unique_ptr<DraftHead> head;
  std::unique_ptr<HeadWorkspace> head_workspace;  // of every drafter
  HeadInUse head_in_use;                          // where there is one
  std::string no_head = "no draft head was looked for";
  StoreInUse store;
  std::optional<StoreBuilder> learner;
  std::filesystem::path learner_file;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
  std::vector<TokenId> end_ids;  // ascending
  std::vector<std::string> warnings;
  std::filesystem::path path;  // empty: not made from files
  int context = 0;
  int threads = 1;
  CacheType cache = CacheType::F16;
  WeightsType weights = WeightsType::Native;
  bool wide = false;
  size_t longest_token = 0;  // bytes of the longest one that is text
  TokenId longest_token_id = -1;

  PrefixCache prefixes{kPrefixCacheBytes};

  // Made at first use.
  std::optional<GateVerdict> gate;
  std::unique_ptr<Workspace> workspace;  // of every pass
  std::vector<PassPart> parts;           // of the pass under way, and whose they are
  std::vector<Generation::State*> members;
  std::once_flag costs_once;
  std::optional<CostTracker> costs;
  std::once_flag sha256_once;
  std::string sha256;
};

}  // namespace paceline

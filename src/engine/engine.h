// The engine: a checkpoint opened once, and generations that run on it. This header is the library
// interface; applications need nothing below it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/numerics.h"
#include "base/result.h"
#include "base/types.h"
#include "engine/gate.h"
#include "engine/probe.h"
#include "engine/row_sink.h"
#include "models/draft_head.h"
#include "models/model.h"
#include "models/registry.h"
#include "spec/counts.h"
#include "spec/drafter.h"
#include "spec/policy.h"
#include "spec/replay.h"
#include "spec/sampling_options.h"
#include "spec/sequence.h"
#include "spec/store.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace paceline {

inline constexpr int kMaxDepth = kMostDrafts;  // drafts on a path at most
inline constexpr int kAutoDepth = -1;          // the policy decides each round
inline constexpr int kMaxTree = kMostNodes;
inline constexpr int kAutoTree = -1;  // a tree where the policy decides, else a chain

// How many drafts a round has: on the longest path, and in all where they form a tree.
struct DraftShape {
  int depth = kAutoDepth;
  int tree = kAutoTree;
  bool operator==(const DraftShape&) const = default;
};

struct EngineOptions {
  int threads = 0;  // 0: the CPUs that this process may use
  WeightsType weights = WeightsType::Native;
  std::optional<CacheType> cache = {};  // none: f16, or f32 with f32 weights
  int context = 0;  // tokens of prompt and output together; 0: what the checkpoint was made for
  // None: amx where this machine has AMX, else portable (docs/numerics.md).
  std::optional<Numerics> numerics = {};
  // A negative control for tests and probes: kernels that sum several rows in another order than
  // one. Speculation with them may differ from plain decoding.
  bool wide_kernels = false;
  // Whether a draft head is loaded beside the model: this file, or where none is named the one that
  // is found for the model (engine/head_search.h tells where).
  bool use_head = true;
  std::filesystem::path head = {};
  // The same for a store of n-grams (engine/trunk_store.h). learn: answers handed to learn() are to
  // make the file that is named grow, or one of this machine's.
  bool use_store = true;
  std::filesystem::path store = {};
  bool learn = false;
  // Called while loading with what is being done and the share done so far, 0 to 1.
  std::function<void(std::string_view what, double share)> progress = {};
};

// Auto: the union where there is a head or a store, else lookup.
enum class DrafterKind { Auto, None, Lookup, Scripted, Mtp, Union };

// How several prompts begin, read once for all of them: Engine::read_beginning.
class Beginning;

struct Request {
  std::vector<TokenId> prompt;  // at least one token
  int max_tokens = 256;         // at least 1; capped by the context
  std::vector<std::string> stop = {};
  bool ignore_eos = false;
  int depth = kAutoDepth;  // drafts on the longest path of a round, 0 to kMaxDepth, or kAutoDepth
  // Drafts a round that form a tree at most, 0 for a chain, to kMaxTree, or kAutoTree. Scripted
  // drafts and those for a row sink form chains.
  int tree = kAutoTree;
  DrafterKind drafter = DrafterKind::Auto;
  // For DrafterKind::Scripted: the token drafted for output index i is script[i]; past its end the
  // drafter is silent. Output index 0 is the token that the prefill yields.
  std::vector<TokenId> script = {};
  SamplingOptions sampling = {};  // greedy unless asked for otherwise
  int logprobs = -1;  // -1: none; n >= 0: each token's own and those of the n most likely
  bool gaps = false;  // keep how far the second likeliest token was behind the first
  // Draft although the gate has not found the trunk exact: the text may differ from plain text.
  bool allow_inexact = false;
  // Gets every committed row; not owned, and must outlive the generation. Whatever earlier
  // generations have read, the whole prompt is read for it, but for its `beginning`.
  RowSink* row_sink = nullptr;
  // What the prompt begins with, and is longer than: its rows are taken over, by the row sink too.
  // Read anew where a head drafts, or the gate found blocks to matter.
  std::shared_ptr<const Beginning> beginning = {};
};

enum class FinishReason { None, Stop, Length, Interrupted };
const char* to_string(FinishReason reason);

// In double, so that two logprobs are equal only where their logits are.
struct TokenLogprob {
  TokenId id = 0;
  double logprob = 0;                           // natural logarithm, of raw logits
  std::vector<std::pair<TokenId, double>> top;  // descending, ties by id
};

// The two largest logits of the row that a token was chosen from.
struct TokenGap {
  int position = 0;  // of the row, in prompt and output
  TokenId token = 0;
  TokenId top1 = 0;
  TokenId top2 = 0;         // -1 in a vocabulary of one
  float gap = 0;            // the largest float then
  bool ends_round = false;  // the last token of its round, or the prefill's own
};

// Text that has become certain: whole UTF-8 characters, and no part of a stop string.
struct TextPiece {
  std::string_view text;  // valid until the generation's next step
  EmittedToken token;     // the token that the piece came with, for colouring
};

struct GenerationStats : RoundCounts {
  int prompt_tokens = 0;
  int reused_tokens = 0;  // of the prompt, taken over from an earlier generation
  double prefill_seconds = 0;
  double draft_seconds = 0;   // rounds: drafting,
  double verify_seconds = 0;  // the trunk's passes, whole ones also where they are shared,
  double other_seconds = 0;   // accepting, committing, text
  double decode_seconds() const { return draft_seconds + verify_seconds + other_seconds; }
  double tokens_per_second() const {
    return decode_seconds() > 0 ? static_cast<double>(round_tokens) / decode_seconds() : 0;
  }
};

// The draft head of an engine.
struct HeadInUse {
  std::filesystem::path file;  // of its own, or the checkpoint
  bool in_checkpoint = false;
  // Of the file; in a checkpoint of its settings and of its tensors' names and bytes.
  std::string sha256;
  HeadInfo info;
};

// The store of n-grams of an engine.
struct StoreInUse {
  std::filesystem::path file;  // empty: not from one
  std::shared_ptr<const NgramStore> store;
};

// What save_learnt() did.
struct Learnt {
  int64_t tokens = 0;  // that were new
  std::filesystem::path file;
};

class Engine;

// One generation under way. Step it until it is done; it may be dropped at any time. The engine
// must outlive it. Several may be under way on one engine, and step in any order or together; one
// step runs at a time.
class Generation {
 public:
  ~Generation();
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;

  // Reads a chunk of the prompt or runs one round and returns the text that became certain; empty
  // when none did. After done() it returns nothing more. The error case is a row of logits without
  // a finite maximum; it ends the generation, with no finish reason. A round allocates nothing,
  // except for log-probabilities where they are asked for.
  Result<std::span<const TextPiece>> step();

  // A step of each, in passes that read the weights once for all: with many sequences, or several
  // prompts, the most tokens a second. Each has its own depth, drafter and rules of stopping and
  // joins or leaves between any two steps; none writes a byte that it would not write alone.
  // pieces() and error() of each tell what came of it.
  static void step_together(std::span<Generation* const> generations);
  std::span<const TextPiece> pieces() const;  // of the last step
  const std::optional<Error>& error() const;  // what ended it, if it was that

  bool done() const;
  // Ends it where it is: finish reason Interrupted, held-back text is released.
  std::span<const TextPiece> interrupt();

  FinishReason finish_reason() const;
  const std::vector<EmittedToken>& tokens() const;  // the end token among them, if one came
  const std::string& text() const;  // what has become certain, without end token and stop string
  const std::vector<TokenLogprob>& logprobs() const;
  const std::vector<TokenGap>& gaps() const;
  const GenerationStats& stats() const;
  const char* drafter() const;  // "none", "lookup", "scripted", "mtp", "union"
  // Whether the request asked for drafts and the gate declined: the run is plain.
  bool declined() const;

 private:
  friend class Engine;
  struct State;
  explicit Generation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Engine {
 public:
  static Result<Engine> open(const std::filesystem::path& path, const EngineOptions& options = {});
  // For tests and studies: any trunk; without a tokenizer, ids only.
  static Result<Engine> with_model(std::unique_ptr<Model> model, int context, int threads,
                                   std::vector<TokenId> end_ids, CacheType cache = CacheType::F16,
                                   std::unique_ptr<Tokenizer> tokenizer = nullptr);
  // Another engine over the same weights, head, store and tokenizer with so many threads of its
  // own, at least one: its generations step at the same time as this one's, where a single engine
  // runs one step at a time. Bytes are the same in either. A verdict of the gate goes with it; what
  // it has read, its costs and later verdicts are its own, and it learns nothing. Called by the
  // thread that is to step its generations; it may outlive this one. Unsupported as Model::beside,
  // TooLarge where there is no memory or no thread.
  Result<Engine> beside(int threads) const;
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  const Model& model() const;
  const Tokenizer* tokenizer() const;         // null when the checkpoint has none
  const ChatTemplate* chat_template() const;  // null when the checkpoint has none
  std::span<const TokenId> end_ids() const;   // ascending
  // Things about the checkpoint that are worth a warning, a sentence each.
  std::span<const std::string> warnings() const;
  int context() const;
  int threads() const;
  CacheType cache_type() const;
  WeightsType weights() const;
  const std::string& model_sha256() const;  // "" when not made from a file; cached on disk
  const HeadInUse* head() const;            // null: there is none
  // Why there is none, a sentence: the places that were looked at, or what is wrong with the one
  // found. Empty where there is one.
  const std::string& no_head() const;
  // For tests, studies and training: drafts come from this head from now on, which is packed as
  // one from a file is. Before the first start().
  Result<void> use_head(const HeadTensors& head);

  const StoreInUse* store() const;  // null: there is none
  // For tests and studies: drafts come from this store too. Before the first start().
  void use_store(std::shared_ptr<const NgramStore> store);
  // An answer of this model, without its prompt, for the store that EngineOptions::learn asked for;
  // without that nothing happens. What this engine drafts does not change.
  void learn(std::span<const TokenId> answer) const;
  // Puts what was learnt since the last time into the file. Other processes may do so at the same
  // time; nothing is lost.
  Result<Learnt> save_learnt() const;

  // The rounds that a live run of this request would have run over a text that is already written,
  // its prompt among it: the same drafter, prompt read from the start. Of the request drafter,
  // depth and script count. Nothing is written here, so no gate is asked. At depth auto by the
  // costs of this machine as they stand, all through the text.
  Result<RoundCounts> replay(const RecordedText& text, const Request& request) const;

  // Prompt ids: the chat template where the model has one and raw is false, else the text with the
  // tokenizer's own BOS rule.
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages) const;
  Result<std::vector<TokenId>> encode_text(std::string_view text) const;
  std::string decode(std::span<const TokenId> ids) const;

  // Checks the request (BadUsage names the field; TooLarge with both numbers for a prompt that
  // leaves no room in the context) and takes all memory that it needs. What an earlier generation
  // has read of the same beginning is taken over. Two requests with the same fields give the same
  // tokens, whatever ran before or runs beside them.
  Result<Generation> start(const Request& request) const;

  // Reads what several requests begin with: at least one token (BadUsage), and room in the context
  // behind them (TooLarge).
  Result<std::shared_ptr<const Beginning>> read_beginning(std::span<const TokenId> ids) const;

  // Whether a block gives what a chain gives, for this trunk, binary, instruction set and number of
  // threads: probed at first use (a few seconds), remembered in the user's cache folder. Asked by
  // start() for requests that draft; speculation runs only behind `exact`. stop: ends a probe that
  // is under way; looked at between passes.
  const GateVerdict& gate(const std::function<bool()>& stop = {}) const;
  // What `gate` depends on, as one line; "" when the engine was not made from a file.
  std::string gate_key() const;
  // A longer look. Its verdict becomes the gate's, in this engine and those to come.
  Result<ProbeResult> probe(const ProbeOptions& options) const;

  // r(m) for every width and the price of a draft, in passes of one row; see spec/policy.h.
  // Measured on this machine at first use (some hundred milliseconds); from then on r(m) follows
  // the passes of generations that step alone, spec/cost_tracker.h. So not while one of them does.
  const CostModel& costs() const;

 private:
  friend class Generation;
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline

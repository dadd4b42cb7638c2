// Whole runs over the round, without an engine: what tests of losslessness compare.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "spec/round.h"
#include "spec/scripted.h"
#include "tests/plain_argmax.h"

namespace paceline {

// Keeps what is emitted; ends at an end token, and behind `budget` tokens.
class RecordingSink : public TokenSink {
 public:
  explicit RecordingSink(int budget, TokenId end = -1, bool greedy = true)
      : budget_(budget), end_(end), greedy_(greedy) {}
  bool emit(const EmittedToken& token, std::span<const float> logits) override {
    check(!greedy_ || plain_argmax(logits) == token.id,
          "the row that a token comes with is its own");
    tokens.push_back(token.id);
    emitted.push_back(token);
    return token.id != end_ && static_cast<int>(tokens.size()) < budget_;
  }

  std::vector<TokenId> tokens;
  std::vector<EmittedToken> emitted;

 private:
  int budget_;
  TokenId end_;
  bool greedy_;
};

struct ToyRun {
  std::vector<TokenId> tokens;
  std::vector<RoundStats> rounds;
  std::string error;
};

struct ToyRunOptions {
  std::vector<TokenId> prompt = {3, 1, 4, 1, 5};
  int budget = 64;
  int depth = 4;
  int nodes = 0;  // drafts of a tree; 0: a chain
  TokenId end = -1;
  DepthPolicy* policy = nullptr;
  const CostModel* costs = nullptr;
  AcceptRule* rule = nullptr;  // null: greedy
  // Called after the prefill and after every round.
  std::function<void(const Sequence&, const std::vector<TokenId>& output)> check_round = {};
};

inline ToyRun toy_run(const Model& model, Drafter& drafter, const ToyRunOptions& options = {}) {
  GreedyRule greedy_rule(plain_argmax);
  AcceptRule& rule = options.rule != nullptr ? *options.rule : greedy_rule;
  const int n_prompt = static_cast<int>(options.prompt.size());
  auto state = model.make_state(n_prompt + options.budget - 1, CacheType::F32);
  auto workspace = model.make_workspace(kPrefillRows, kPrefillRows);
  check(state && workspace, "a toy's sequence fits into memory");
  const Depth depth = {options.depth, options.nodes, options.policy, options.costs};
  Sequence seq = make_sequence(std::move(*state), options.budget, depth.most_drafts());
  RecordingSink sink(options.budget, options.end, options.rule == nullptr);
  drafter.begin(options.prompt, n_prompt + options.budget);
  rule.begin(options.prompt, n_prompt + options.budget);

  ToyRun run;
  const auto first = run_prefill(seq, model, **workspace, options.prompt, drafter, rule, sink);
  if (!first) run.error = first.error().message;
  bool goes_on = first && *first == Progress::Goes;
  if (options.check_round) options.check_round(seq, sink.tokens);
  while (goes_on) {
    const auto round = run_round(seq, model, **workspace, drafter, depth, rule, sink);
    if (!round) {
      run.error = round.error().message;
      break;
    }
    run.rounds.push_back(*round);
    goes_on = !round->ended;
    if (options.check_round) options.check_round(seq, sink.tokens);
  }
  run.tokens = sink.tokens;
  return run;
}

inline std::vector<TokenId> toy_plain(const Model& model, ToyRunOptions options = {}) {
  SilentDrafter none;
  options.depth = 0;
  options.nodes = 0;
  options.policy = nullptr;
  options.check_round = nullptr;
  return toy_run(model, none, options).tokens;
}

// The right token as far as the plain run knows it, but a wrong one at place d of every block
// (d from 1; 0: never), or at random.
class PlaceDrafter : public Drafter {
 public:
  PlaceDrafter(std::vector<TokenId> plain, int wrong_place, double miss_rate = 0)
      : plain_(std::move(plain)), wrong_place_(wrong_place), miss_rate_(miss_rate) {}
  void begin(std::span<const TokenId> /*prompt*/, int /*capacity*/) override { n_output_ = 0; }
  void observe(std::span<const TokenId> tokens, Mat<const float> /*hidden*/) override {
    n_output_ += tokens.size();
  }
  int draft(std::span<Draft> out) override {
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t at = n_output_ + i;
      const TokenId right = at < plain_.size() ? plain_[at] : 0;
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      const bool miss = static_cast<double>(random_ >> 40) < miss_rate_ * (1 << 24);
      const bool wrong = miss || static_cast<int>(i) + 1 == wrong_place_;
      out[i].token = wrong ? (right + 1) % 100 : right;
    }
    return static_cast<int>(out.size());
  }

 private:
  std::vector<TokenId> plain_;
  int wrong_place_;
  double miss_rate_;
  size_t n_output_ = 0;
  uint64_t random_ = 1;
};

// Random trees: of any shape, with the right path to a random depth at random places among the
// others, and siblings and branches that share tokens.
class RandomTreeDrafter : public PlaceDrafter {
 public:
  RandomTreeDrafter(std::vector<TokenId> plain, unsigned seed)
      : PlaceDrafter(plain, 0), plain_(std::move(plain)), random_(seed) {}
  void begin(std::span<const TokenId> prompt, int capacity) override {
    PlaceDrafter::begin(prompt, capacity);
    n_output_ = 0;
  }
  void observe(std::span<const TokenId> tokens, Mat<const float> hidden) override {
    PlaceDrafter::observe(tokens, hidden);
    n_output_ += tokens.size();
  }
  bool grows() const override { return true; }
  int grow(const DraftRoom& room, GrowthRule& /*rule*/) override {
    const int n = static_cast<int>(random_() % (room.out.size() + 1));
    int tip = kPending;  // of the right path
    for (int i = 0; i < n; ++i) {
      const int tip_depth = depth_of(room.out, tip);
      const bool right = tip_depth < room.depth && random_() % 3 == 0;
      int parent = right ? tip : static_cast<int>(random_() % (i + 1)) - 1;
      if (depth_of(room.out, parent) >= room.depth) parent = kPending;
      const size_t at = n_output_ + static_cast<size_t>(depth_of(room.out, parent));
      const TokenId next = at < plain_.size() ? plain_[at] : 0;
      Draft draft = {.token = right ? next : static_cast<TokenId>((next + 1 + random_() % 3) % 300),
                     .back = back_to(parent, i)};
      room.out[i] = draft;
      if (right) tip = i;
    }
    return n;
  }

 private:
  std::vector<TokenId> plain_;
  size_t n_output_ = 0;
  std::mt19937 random_;
};

}  // namespace paceline

// A trunk with a fault in it, and the instruments of drift and trace held against it: what
// tests/planted_faults_test.cpp and its twin over the real model share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/check.h"
#include "measure/drift.h"
#include "measure/forced.h"
#include "measure/trace.h"
#include "tests/toy_runs.h"

namespace paceline {

enum class Fault {
  None,
  SkippedRollback,  // rows that fell stay in the cache, in front of those that follow
  StaleRow,         // the first row that fell stands in the cache where the last that stood should
};

// What a test's engine has planted in it.
struct Planted {
  Fault fault = Fault::None;
  bool wide = false;
  float grid = 0;
};

// A sequence of the trunk below, in which commits go wrong.
class FaultyState final : public SequenceState {
 public:
  FaultyState(const Model& model, Fault fault, CacheType cache, int capacity)
      : SequenceState(capacity), model_(model), fault_(fault), cache_(cache) {
    // Rows that stay take room of their own.
    const int context = model.info().context_length;
    const int room = fault == Fault::SkippedRollback ? std::min(context, 5 * capacity) : capacity;
    inner_ = *model.make_state(std::max(room, capacity), cache);
    workspace_ = *model.make_workspace(1, 1);
  }

  int64_t bytes() const override { return inner_->bytes(); }
  Result<std::unique_ptr<SequenceState>> fork(int capacity, int /*length*/) const override {
    return std::unique_ptr<SequenceState>(
        std::make_unique<FaultyState>(model_, fault_, cache_, capacity));
  }
  void append_bytes(int position, std::vector<std::byte>& to) const override {
    inner_->append_bytes(position, to);
  }

  SequenceState& inner() { return *inner_; }
  // The same block where the state below has come to.
  const Block& open(const Block& block) {
    open_block(block);
    if (block_.capacity() < block.rows()) block_ = Block(block.capacity());
    block_.reset(inner_->length());
    for (const TokenId token : block.tokens()) block_.add(token);
    return block_;
  }

 private:
  void keep(std::span<const int> path) override {
    const int stand = static_cast<int>(path.size());
    const bool all_stand = stand == block_.rows();
    if (fault_ == Fault::SkippedRollback) return inner_->commit(block_.rows());
    if (fault_ == Fault::None || all_stand || stand == 0) return inner_->commit(stand);
    inner_->commit(stand - 1);
    Block stale(1);
    stale.reset(inner_->length());
    stale.add(block_.tokens()[stand]);
    model_.forward(stale, *inner_, LogitRows::None, *workspace_);
    inner_->commit(1);
  }

  const Model& model_;
  Fault fault_;
  CacheType cache_;
  std::unique_ptr<SequenceState> inner_;
  std::unique_ptr<Workspace> workspace_;
  Block block_{1};
};

class FaultyModel final : public Model {
 public:
  // grid: logits are rounded to its multiples, so that ties are the rule; 0: as they are.
  FaultyModel(std::unique_ptr<Model> model, Fault fault, float grid = 0)
      : model_(std::move(model)), fault_(fault), grid_(grid) {}

  const ModelInfo& info() const override { return model_->info(); }
  Result<std::unique_ptr<SequenceState>> make_state(int capacity, CacheType cache) const override {
    return std::unique_ptr<SequenceState>(
        std::make_unique<FaultyState>(*model_, fault_, cache, capacity));
  }
  Result<std::unique_ptr<Workspace>> make_workspace(int max_rows,
                                                    int max_logit_rows) const override {
    return model_->make_workspace(max_rows, max_logit_rows);
  }
  using Model::forward;
  void forward(std::span<PassPart> parts, Workspace& workspace) const override {
    std::vector<PassPart> inner(parts.begin(), parts.end());
    for (PassPart& part : inner) {
      auto& state = static_cast<FaultyState&>(*part.state);
      part.block = &state.open(*part.block);
      part.state = &state.inner();
    }
    model_->forward(inner, workspace);
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].out = inner[i].out;
      for (int row = 0; grid_ > 0 && row < parts[i].out.logits.rows; ++row)
        for (float& logit : parts[i].out.logits.row(row)) logit = grid_ * std::round(logit / grid_);
    }
  }

 private:
  std::unique_ptr<Model> model_;
  Fault fault_;
  float grid_;
};

// The last of equals, where every path of the product takes the first.
inline int last_argmax(std::span<const float> row) {
  int best = plain_argmax(row);
  for (int i = best; i >= 0 && i < static_cast<int>(row.size()); ++i)
    if (row[i] == row[best]) best = i;
  return best;
}

// What the instruments say of two trunks: one arm plain on `a`, the other in rounds on `b`.
struct Found {
  measure::Drift drift;
  measure::Forced forced;  // `b` read in rows and in blocks
  measure::TraceComparison traces;
};

struct Sweep {
  int width = 5;
  int prefill = 16;
  int piece = 256;
  int max_tokens = 128;
  double miss_rate = 0.3;       // share of the drafts that are wrong
  bool last_of_equals = false;  // the second arm's tie rule
};

using Ids = std::vector<TokenId>;

// The rows of a text as `trace` writes them.
inline std::vector<measure::TracePoint> trace_of(const Engine& engine, const Ids& text,
                                                 const Sweep& sweep, int width) {
  std::vector<measure::TracePoint> points;
  const auto traced = measure::trace_text(
      engine, text, {.width = width, .prefill = sweep.prefill, .piece = sweep.piece, .top = 16},
      [&](const measure::TracePoint& point) -> Result<void> {
        points.push_back(point);
        return {};
      });
  EXPECT_TRUE(traced) << traced.error().message;
  return points;
}

// As a program writes it that orders equal logits the other way round.
inline void swap_ties(std::vector<measure::TracePoint>& points) {
  for (measure::TracePoint& point : points)
    std::stable_sort(point.top.begin(), point.top.end(), [](const auto& x, const auto& y) {
      return x.second > y.second || (x.second == y.second && x.first > y.first);
    });
}

// Both streams of every prompt: plain, and in rounds with drafts of which some are wrong.
inline void run_drift(const Engine& a, const Engine& b, const std::vector<Ids>& prompts,
                      const Sweep& sweep, Found& found) {
  std::vector<measure::IdStream> streams[2];
  GreedyRule swapped(last_argmax);
  for (const Ids& prompt : prompts) {
    ToyRunOptions options{.prompt = prompt, .budget = sweep.max_tokens, .depth = sweep.width - 1};
    const Ids plain = toy_plain(a.model(), options);
    if (sweep.last_of_equals) options.rule = &swapped;
    PlaceDrafter drafter(plain, 0, sweep.miss_rate);
    const ToyRun run = toy_run(b.model(), drafter, options);
    EXPECT_EQ(run.error, "");
    const std::string name = std::to_string(streams[0].size());
    streams[0].push_back({name, plain});
    streams[1].push_back({name, run.tokens});
    EXPECT_TRUE(measure::compare_forced(b, prompt, plain, 1, sweep.width, found.forced));
  }
  const auto drift = measure::compare_streams(streams[0], streams[1]);
  check(drift.has_value(), "two arms over the same prompts");
  found.drift = *drift;
}

inline Found look(const Engine& a, const Engine& b, const std::vector<Ids>& prompts,
                  const Ids& text, const Sweep& sweep) {
  Found found;
  run_drift(a, b, prompts, sweep, found);
  const auto reference = trace_of(a, text, sweep, 1);
  auto candidate = trace_of(b, text, sweep, sweep.width);
  if (sweep.last_of_equals) swap_ties(candidate);
  const auto traces = measure::compare_traces(reference, candidate);
  check(traces.has_value(), "two traces over the same text");
  found.traces = *traces;
  return found;
}

inline void tell(const char* fault, const Found& found) {
  const auto& traces = found.traces;
  std::printf(
      "%-17s drift: %s, %lld of %lld positions; forced: %lld of %lld choose differently, %lld "
      "moved; trace: %lld of %lld choose differently, %lld of %lld decided, %lld moved, by %.3g at "
      "most\n",
      fault, to_string(found.drift.outcome), static_cast<long long>(found.drift.differing),
      static_cast<long long>(found.drift.compared),
      static_cast<long long>(found.forced.all_differing()),
      static_cast<long long>(found.forced.positions), static_cast<long long>(found.forced.moved),
      static_cast<long long>(traces.differing), static_cast<long long>(traces.positions),
      static_cast<long long>(traces.differing_decided), static_cast<long long>(traces.decided),
      static_cast<long long>(traces.moved), traces.quantile(1));
}

}  // namespace paceline

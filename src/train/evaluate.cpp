#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/check.h"
#include "fmt/format.h"
#include "io/shown.h"
#include "kernels/argmax.h"
#include "spec/dump_text.h"
#include "spec/head_drafter.h"

namespace paceline::train {
namespace {

struct LoadedHead {
  std::unique_ptr<DraftHead> head;
  std::unique_ptr<HeadWorkspace> workspace;
};
Result<LoadedHead> load(const Model& model, const HeadTensors& tensors) {
  LoadedHead loaded;
  auto head = model.make_head(tensors);
  if (!head) return head.error();
  loaded.head = std::move(*head);
  auto workspace = loaded.head->make_workspace(HeadDrafter::kWorkspaceRows);
  if (!workspace) return workspace.error();
  loaded.workspace = std::move(*workspace);
  return loaded;
}

// Of a given text all of it.
std::vector<TokenId> prompt_of(const DumpStream& stream) {
  const auto tokens = stream.tokens.first(stream.given_text ? stream.tokens.size()
                                                            : static_cast<size_t>(stream.n_prompt));
  return {tokens.begin(), tokens.end()};
}

// A head that reads a text's rows one by one, each with the chain of the text's own tokens behind.
class Walk {
 public:
  Walk(const DraftHead& head, HeadWorkspace& workspace, HeadState& state, int depths)
      : head_(head), workspace_(workspace), state_(state), depths_(depths) {}

  // hidden: of row p; tokens: from t_{p+1} on, one for each depth that is wanted.
  // take(depth, out): what each depth gives.
  template <class Take>
  void row(std::span<const float> hidden, std::span<const TokenId> tokens, const Take& take) {
    std::vector<float> state(hidden.begin(), hidden.end());
    const int modules = state_.modules();
    const auto n = std::min(static_cast<int>(tokens.size()), depths_);
    for (int depth = 1; depth <= n; ++depth) {
      const int module = std::min(depth, modules) - 1;
      const HeadOut out =
          head_.forward({.module = module,
                         .hidden = {state.data(), 1, static_cast<int>(state.size())},
                         .tokens = tokens.subspan(depth - 1, 1),
                         .n_next = 1,
                         .n_logits = 1},
                        state_, workspace_);
      if (depth <= modules) state_.commit(module, 1);
      take(depth, out);
      std::ranges::copy(out.next.row(0), state.begin());
    }
    if (n > modules) state_.rollback(modules - 1);
  }

 private:
  const DraftHead& head_;
  HeadWorkspace& workspace_;
  HeadState& state_;
  int depths_;
};

}  // namespace

EvaluationPlan plan_evaluation(const TrainingData& data, int64_t tokens, int depth,
                               CacheType cache) {
  EvaluationPlan plan{.dump = &data.dump(), .streams = {}, .depth = depth, .cache = cache};
  int64_t taken = 0;
  for (const int i : data.evaluation_streams()) {
    if (taken >= tokens) break;
    const DumpStream stream = data.dump().stream(i);
    plan.streams.push_back(i);
    taken += std::min(stream.cycle_start, stream.positions()) - stream.n_prompt;
  }
  return plan;
}

Result<EvaluationPlan> plan_judgement(const Dump& training, const Dump& judge, int depth,
                                      CacheType cache) {
  std::set<std::string_view> ids;
  std::set<std::vector<TokenId>> prompts;
  for (int i = 0; i < training.size(); ++i) {
    const DumpStream stream = training.stream(i);
    ids.insert(stream.id);
    prompts.insert(prompt_of(stream));
  }
  EvaluationPlan plan{.dump = &judge, .streams = {}, .depth = depth, .cache = cache};
  bool any = false;
  for (int i = 0; i < judge.size(); ++i) {
    const DumpStream stream = judge.stream(i);
    const bool same_id = ids.contains(stream.id);
    if (same_id || prompts.contains(prompt_of(stream)))
      return Error{ErrorCode::BadUsage,
                   fmt::format("the {} of its stream {} is in the training dump as well; heads are "
                               "judged over streams that none was trained on",
                               same_id ? "id" : "prompt", quoted_name(stream.id))};
    plan.streams.push_back(i);
    any = any || recorded_text(stream).has_value();
  }
  if (!any)
    return Error{ErrorCode::BadUsage, "it holds no whole stream with an answer before a cycle"};
  return plan;
}

std::vector<double> joint_acceptance(const RoundCounts& counts) {
  std::vector<double> shares;
  for (const int64_t accepted : counts.accepted_by_depth)
    shares.push_back(
        counts.rounds > 0 ? static_cast<double>(accepted) / static_cast<double>(counts.rounds) : 0);
  return shares;
}

std::vector<double> Evaluation::joint() const { return joint_acceptance(counts); }

std::vector<double> Evaluation::conditional() const {
  std::vector<double> shares;
  int64_t before = counts.rounds;
  for (const int64_t accepted : counts.accepted_by_depth) {
    shares.push_back(before > 0 ? static_cast<double>(accepted) / static_cast<double>(before) : 0);
    before = accepted;
  }
  return shares;
}

double Evaluation::expected() const { return counts.expected(); }

Result<Evaluation> evaluate(const Model& model, const HeadTensors& head, const EvaluationPlan& plan,
                            const std::function<bool()>& stop) {
  auto loaded = load(model, head);
  if (!loaded) return loaded.error();
  HeadDrafter drafter(*loaded->head, *loaded->workspace, plan.cache);
  Evaluation evaluation;
  evaluation.counts.begin(plan.depth);
  evaluation.by_length.resize(std::size(kLengths));
  for (RoundCounts& counts : evaluation.by_length) counts.begin(plan.depth);
  evaluation.by_stream.resize(plan.streams.size());
  for (size_t at = 0; at < plan.streams.size(); ++at) {
    if (stop && stop()) return Error{ErrorCode::Interrupted, "interrupted"};
    const auto text = recorded_text(plan.dump->stream(plan.streams[at]));
    if (!text) continue;
    const RoundCounts counts = replay_stream(*text, drafter, {.limit = plan.depth});
    evaluation.counts.add(counts);
    evaluation.by_stream[at] = counts;
    const int length = static_cast<int>(std::ssize(text->tokens)) - text->n_prompt;
    const auto bucket = std::ranges::upper_bound(kLengths, length) - std::begin(kLengths) - 1;
    evaluation.by_length[bucket].add(counts);
  }
  return evaluation;
}

Result<Distance> distance_to_serving(const HeadNet& net, const NetShape& shape,
                                     const NetBatch& batch, std::span<const TokenId> tokens,
                                     const DraftHead& head, CacheType cache) {
  check(batch.segments.size() == 1, "one piece is compared");
  const int rows = batch.rows();
  auto state = head.make_state(rows + shape.depths, cache);
  if (!state) return state.error();
  auto workspace = head.make_workspace(1);
  if (!workspace) return workspace.error();
  std::vector<std::vector<double>> distances(shape.depths);
  Walk walk(head, **workspace, **state, shape.depths);
  for (int row = 0; row + 1 < rows; ++row) {
    // Tokens t_{p+1} .. of which the last is still followed by a target.
    const auto next = tokens.subspan(row + 1, rows - row - 1);
    walk.row(batch.hidden.row(row), next, [&](int depth, const HeadOut& out) {
      const auto served = out.next.row(0);
      const auto trained = net.state(depth).row(row);
      double off = 0;
      double size = 0;
      for (size_t i = 0; i < served.size(); ++i) {
        off += std::pow(double(trained[i]) - served[i], 2);
        size += std::pow(double(served[i]), 2);
      }
      distances[depth - 1].push_back(std::sqrt(off / std::max(size, 1e-30)));
    });
  }
  Distance distance;
  distance.rows = rows - 1;
  for (auto& each : distances) {
    std::ranges::sort(each);
    distance.median.push_back(each.empty() ? 0 : each[each.size() / 2]);
  }
  return distance;
}

Result<void> compare_with_file(const Model& model, const HeadTensors& trained,
                               const std::filesystem::path& file, const EvaluationPlan& plan) {
  constexpr int kRows = 48;
  auto written = read_head(file);
  if (!written) return written.error();
  auto ours = load(model, trained);
  auto theirs = load(model, *written);
  if (!ours) return ours.error();
  if (!theirs) return theirs.error();
  const DumpStream stream = plan.dump->stream(plan.streams.front());
  const int rows = std::min(kRows, stream.positions() - 1);
  struct Given {
    std::vector<float> next;
    TokenId best;
  };
  std::vector<Given> given[2];
  const LoadedHead* heads[2] = {&*ours, &*theirs};
  for (int side = 0; side < 2; ++side) {
    const DraftHead& head = *heads[side]->head;
    auto state = head.make_state(rows + plan.depth, plan.cache);
    if (!state) return state.error();
    Walk walk(head, *heads[side]->workspace, **state, plan.depth);
    std::vector<float> hidden(stream.width);
    for (int row = 0; row < rows; ++row) {
      stream.hidden(row, hidden);
      walk.row(hidden, stream.tokens.subspan(row + 1), [&](int, const HeadOut& out) {
        const auto next = out.next.row(0);
        const int best = argmax(out.logits.row(0));
        given[side].push_back({{next.begin(), next.end()}, best < 0 ? -1 : head.full_id(best)});
      });
    }
  }
  for (size_t i = 0; i < given[0].size(); ++i) {
    const Given& a = given[0][i];
    const Given& b = given[1][i];
    if (a.best == b.best &&
        std::memcmp(a.next.data(), b.next.data(), a.next.size() * sizeof(float)) == 0)
      continue;
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: read back, the head differs from the one that was trained at "
                             "guess {} over stream {}: best {} where {} was wanted",
                             file.string(), i, quoted_name(stream.id), b.best, a.best)};
  }
  return {};
}

}  // namespace paceline::train

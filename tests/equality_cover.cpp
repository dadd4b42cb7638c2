// The text of a run is the same whatever the depth, the drafter, its trees, the threads, the
// instruction set and the sequences beside it: a pairwise cover of all of these over a real model.
//
//   equality_cover [MODEL] [--quick] [--tokens N] [--from ROW]
//
// Every pair of values of two factors occurs in some row. Each row's sequences are held against the
// plain run of the same prompt, alone, on the best instruction set. The whole takes half an hour on
// two cores; --quick keeps to the best instruction set and short texts; --from goes on where a run
// was stopped.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "engine/engine.h"
#include "kernels/choose.h"

namespace paceline {
namespace {

using Ids = std::vector<TokenId>;

enum Factor {
  kPrompt,
  kDepth,
  kThreads,
  kTable,
  kWeights,
  kBatch,
  kTemperature,
  kDrafter,
  kTree,
  kLength
};
constexpr int kFactors = 10;
using Row = std::array<int, kFactors>;  // index of each factor's value

// The other numerics, whose texts are their own where weights are bf16: against its own plain runs.
constexpr const char* kAmx = "amx-emulated";
constexpr int kThreadCounts[] = {1, 2, 3};
constexpr WeightsType kWeightTypes[] = {WeightsType::Native, WeightsType::BF16};
constexpr int kBatches[] = {1, 2, 5, 8};
constexpr double kTemperatures[] = {0, 0.8};
constexpr DrafterKind kDrafters[] = {DrafterKind::Lookup, DrafterKind::Scripted,
                                     DrafterKind::Union};
constexpr const char* kDrafterNames[] = {"lookup", "scripted", "union"};
constexpr int kTrees[] = {0, 3, 8, 31};  // scripts are chains

// Rows that cover every pair of values, greedily: of some random rows around a pair that is still
// missing, the one that brings most.
std::vector<Row> pairwise(const Row& sizes) {
  using Pair = std::array<int, 4>;  // factor, value, factor, value
  std::set<Pair> missing;
  for (int a = 0; a < kFactors; ++a)
    for (int b = a + 1; b < kFactors; ++b)
      for (int i = 0; i < sizes[a]; ++i)
        for (int k = 0; k < sizes[b]; ++k) missing.insert({a, i, b, k});
  std::mt19937 random(20240607);
  std::vector<Row> rows;
  while (!missing.empty()) {
    Row best = {};
    int best_count = -1;
    for (int attempt = 0; attempt < 60; ++attempt) {
      Row row;
      for (int f = 0; f < kFactors; ++f) row[f] = static_cast<int>(random() % sizes[f]);
      const Pair& wanted = *missing.begin();
      row[wanted[0]] = wanted[1];
      row[wanted[2]] = wanted[3];
      int count = 0;
      for (int a = 0; a < kFactors; ++a)
        for (int b = a + 1; b < kFactors; ++b) count += missing.count({a, row[a], b, row[b]});
      if (count > best_count) {
        best_count = count;
        best = row;
      }
    }
    for (int a = 0; a < kFactors; ++a)
      for (int b = a + 1; b < kFactors; ++b) missing.erase({a, best[a], b, best[b]});
    rows.push_back(best);
  }
  return rows;
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "equality_cover: %s\n", why.c_str());
  std::exit(2);
}

class Cover {
 public:
  Cover(std::string model, const std::string& prompts, bool quick, int tokens)
      : model_(std::move(model)), quick_(quick), tokens_a_sequence_(tokens) {
    for (const KernelTable* table : kernel_tables()) tables_.emplace_back(table->variant);
    if (quick) tables_ = {tables_.back()};
    best_ = tables_.back();
    if (!quick) tables_.emplace_back(kAmx);
    std::ifstream file(prompts);
    for (std::string line; std::getline(file, line);)
      if (!line.empty()) texts_.push_back(nlohmann::json::parse(line)["prompt"]);
    if (texts_.empty()) give_up(prompts + ": no prompts");
  }

  // first: the row to begin with.
  int run(size_t first) {
    std::vector<Row> rows = pairwise({static_cast<int>(texts_.size()), 9, quick_ ? 2 : 3,
                                      static_cast<int>(tables_.size()), 2, 4, 2, 3, 4, 2});
    // Rows of one engine stand together; references come first, on an engine of their own.
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return engine_of(a) < engine_of(b); });
    std::printf("%zu rows, %zu instruction sets, %zu prompts\n", rows.size(), tables_.size(),
                texts_.size());
    const auto to_run = std::span<const Row>(rows).subspan(std::min(first, rows.size()));
    for (const int weights : {0, 1})
      for (const bool amx : {false, true}) make_references(to_run, weights, amx);
    std::optional<Engine> engine;
    std::array<int, 3> opened = {-1, -1, -1};
    for (size_t i = first; i < rows.size(); ++i) {
      if (engine_of(rows[i]) != opened) {
        engine.reset();
        opened = engine_of(rows[i]);
        engine.emplace(open(tables_[rows[i][kTable]], kThreadCounts[rows[i][kThreads]],
                            kWeightTypes[rows[i][kWeights]]));
      }
      run_row(*engine, rows[i], i);
    }
    std::printf("%lld tokens compared in %lld sequences, %lld differ\n",
                static_cast<long long>(tokens_), static_cast<long long>(sequences_),
                static_cast<long long>(different_));
    return different_ == 0 ? 0 : 1;
  }

 private:
  static std::array<int, 3> engine_of(const Row& row) {
    return {row[kWeights], row[kTable], row[kThreads]};
  }

  Engine open(const std::string& table, int threads, WeightsType weights) const {
    setenv("PACELINE_ISA", table.c_str(), 1);
    auto engine = Engine::open(model_, {.threads = threads, .weights = weights, .context = 4096});
    if (!engine) give_up(engine.error().message);
    return std::move(*engine);
  }

  bool is_amx(const Row& row) const { return tables_[row[kTable]] == kAmx; }
  bool is_slow(const Row& row) const { return is_amx(row) || tables_[row[kTable]] == "scalar"; }
  int n_tokens(const Row& row) const {
    return is_slow(row) ? std::min(32, most_tokens()) : most_tokens();
  }
  int most_tokens() const { return tokens_a_sequence_; }
  bool is_long(const Row& row) const { return row[kLength] == 1 && !is_slow(row); }

  // The chat prompt, behind other text until the context is full where it is to be long.
  Ids prompt(const Engine& engine, int index, bool is_long) const {
    std::string text = texts_[index];
    if (is_long) {
      const int room = (quick_ ? 400 : 4096) - most_tokens() - 200;
      std::string before;
      for (int i = 1; encoded(engine, before + text).size() < static_cast<size_t>(room); ++i)
        before += texts_[(index + i) % texts_.size()] + "\n";
      text = before + text;
    }
    return encoded(engine, text);
  }
  static Ids encoded(const Engine& engine, const std::string& text) {
    const ChatMessage message{"user", text};
    auto ids = engine.encode_chat({&message, 1});
    if (!ids) give_up(ids.error().message);
    return *ids;
  }

  struct Wanted {
    int prompt, weights, temperature;
    bool is_long, amx;
    auto operator<=>(const Wanted&) const = default;
  };

  // What sequence k of a row is: k = 0 the row's own, the others its neighbours.
  Wanted wanted(const Row& row, int k) const {
    return {(row[kPrompt] + k) % static_cast<int>(texts_.size()), row[kWeights],
            (row[kTemperature] + k) % 2, k == 0 && is_long(row), is_amx(row)};
  }

  Request request(const Engine& engine, const Wanted& what, int tokens) const {
    Request request{.prompt = prompt(engine, what.prompt, what.is_long), .max_tokens = tokens};
    request.ignore_eos = true;
    request.depth = 0;
    request.sampling.temperature = kTemperatures[what.temperature];
    request.sampling.seed = 100 + static_cast<uint64_t>(what.prompt);
    request.allow_inexact = true;  // the cover itself is the proof
    return request;
  }

  void make_references(std::span<const Row> rows, int weights, bool amx) {
    std::optional<Engine> opened;
    for (const Row& row : rows) {
      for (int k = 0; k < kBatches[row[kBatch]]; ++k) {
        const Wanted what = wanted(row, k);
        if (what.weights != weights || what.amx != amx || references_.count(what) > 0) continue;
        if (!opened) opened.emplace(open(amx ? kAmx : best_, 2, kWeightTypes[weights]));
        const Engine& engine = *opened;
        const int tokens = amx ? n_tokens(row) : most_tokens();
        auto generation = engine.start(request(engine, what, tokens));
        if (!generation) give_up(generation.error().message);
        while (!generation->done())
          if (auto stepped = generation->step(); !stepped) give_up(stepped.error().message);
        Ids& ids = references_[what];
        for (const EmittedToken& token : generation->tokens()) ids.push_back(token.id);
      }
    }
    std::printf("references so far: %zu\n", references_.size());
    std::fflush(stdout);
  }

  void run_row(const Engine& engine, const Row& row, size_t index) {
    const int batch = kBatches[row[kBatch]];
    std::vector<std::optional<Generation>> running(batch);
    for (int step = 0, done = 0; done < batch; ++step) {
      std::vector<Generation*> active;
      done = 0;
      for (int k = 0; k < batch; ++k) {
        if (step == 3 * k) start(engine, row, k, running[k]);
        if (running[k] && running[k]->done()) ++done;
        if (running[k] && !running[k]->done()) active.push_back(&*running[k]);
      }
      Generation::step_together(active);
    }
    int64_t different = 0;
    for (int k = 0; k < batch; ++k) {
      const Ids& reference = references_[wanted(row, k)];
      const auto& got = running[k]->tokens();
      ++sequences_;
      tokens_ += std::ssize(got);
      if (running[k]->error()) give_up(running[k]->error()->message);
      if (static_cast<int>(got.size()) != n_tokens(row)) ++different;
      for (size_t i = 0; i < got.size(); ++i) different += got[i].id != reference[i];
    }
    different_ += different;
    std::printf(
        "row %3zu  %-14s %d threads, %-6s, batch %d, prompt %d%s, depth %d %s, tree %d, T %.1f: "
        "%s\n",
        index, tables_[row[kTable]].c_str(), kThreadCounts[row[kThreads]],
        row[kWeights] == 0 ? "native" : "bf16", batch, row[kPrompt], is_long(row) ? " long" : "",
        row[kDepth], kDrafterNames[row[kDrafter]], kTrees[row[kTree]],
        kTemperatures[row[kTemperature]], different == 0 ? "same" : "DIFFERENT");
    std::fflush(stdout);
  }

  void start(const Engine& engine, const Row& row, int k, std::optional<Generation>& to) {
    const Wanted what = wanted(row, k);
    Request one = request(engine, what, n_tokens(row));
    one.depth = (row[kDepth] + 4 * k) % 9;
    one.drafter = kDrafters[(row[kDrafter] + k) % 3];
    if (one.drafter != DrafterKind::Scripted) one.tree = kTrees[(row[kTree] + k) % 4];
    one.script = references_[what];
    // Wrong drafts at changing distances, so that rejects fall on every depth.
    for (size_t i = 2, gap = 1; i < one.script.size(); i += gap, gap = gap % 11 + 1)
      one.script[i] = (one.script[i] + 1) % engine.model().info().vocab_size;
    auto generation = engine.start(one);
    if (!generation) give_up(generation.error().message);
    to.emplace(std::move(*generation));
  }

  std::string model_;
  bool quick_;
  int tokens_a_sequence_;
  std::vector<std::string> tables_;
  std::string best_;
  std::vector<std::string> texts_;
  std::map<Wanted, Ids> references_;
  int64_t tokens_ = 0;
  int64_t sequences_ = 0;
  int64_t different_ = 0;
};

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  bool quick = false;
  int tokens = 0;
  int first = 0;
  const char* model = std::getenv("PACELINE_SMOLLM2");
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0)
      quick = true;
    else if (std::strcmp(argv[i], "--tokens") == 0 && i + 1 < argc)
      tokens = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--from") == 0 && i + 1 < argc)
      first = std::atoi(argv[++i]);
    else
      model = argv[i];
  }
  if (tokens == 0) tokens = quick ? 24 : 900;
  if (model == nullptr || tokens < 1 || tokens > 3000 || first < 0) {
    std::fprintf(stderr,
                 "usage: equality_cover [MODEL] [--quick] [--tokens 1 to 3000] [--from ROW]; "
                 "without MODEL the file that "
                 "PACELINE_SMOLLM2 names (script/fetch smollm2 prints it)\n");
    return 2;
  }
  return paceline::Cover(model, PACELINE_SOURCE_DIR "/tools/prompts/parity.jsonl", quick, tokens)
      .run(static_cast<size_t>(first));
}

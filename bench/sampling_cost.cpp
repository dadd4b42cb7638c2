// What choosing a token costs, over rows of logits of a real model.
//
//   sampling_cost MODEL [ROWS]
//
// Inside the timing: one choice from one row that has just been written, on one thread. The rows
// are those of texts that the model wrote at temperature 1. Mean over rows of the least of five
// tries, beside the mean of a one-row pass of the trunk on all threads.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kernels/argmax.h"
#include "kernels/choose.h"
#include "spec/sampling.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;
using Tokens = std::vector<TokenId>;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

constexpr const char* kPrompts[] = {
    "Tell me a story about a lighthouse keeper.", "Write a function in Python that sorts a list.",
    "What is the difference between a virus and a bacterium?", "Translate into French: good day."};

struct Row {
  std::vector<float> logits;
  Tokens prompt, output;
};

struct Recorded {
  std::vector<Row> rows;
  double pass_us = 0;  // mean of a one-row pass
};

Recorded record(const Engine& engine, int n_rows, const KernelTable& table) {
  const Model& model = engine.model();
  const int vocab_size = model.info().vocab_size;
  const int per_prompt = n_rows / static_cast<int>(std::size(kPrompts));
  Recorded recorded;
  for (const char* text : kPrompts) {
    const ChatMessage message{"user", text};
    const Tokens prompt = *engine.encode_chat({&message, 1});
    const int n_prompt = static_cast<int>(prompt.size());
    auto state = *model.make_state(n_prompt + per_prompt, engine.cache_type());
    auto workspace = *model.make_workspace(n_prompt, 1);
    Block block(n_prompt);
    block.reset(0);
    for (const TokenId token : prompt) block.add(token);
    Sampler sampler({.temperature = 1}, vocab_size, table);
    Tokens output;
    TrunkOut out = model.forward(block, *state, LogitRows::Last, *workspace);
    state->commit(block.rows());
    for (int i = 0; i < per_prompt; ++i) {
      const auto row = out.logits.row(0);
      recorded.rows.push_back({{row.begin(), row.end()}, prompt, output});
      output.push_back(sampler.draw(row, n_prompt + i));
      block.reset(n_prompt + i);
      block.add(output.back());
      const auto start = Clock::now();
      out = model.forward(block, *state, LogitRows::Last, *workspace);
      recorded.pass_us += microseconds_since(start);
      state->commit(1);
    }
  }
  recorded.pass_us /= static_cast<double>(recorded.rows.size());
  return recorded;
}

// choose(row index, logits)
template <class Choose>
double mean_us(const std::vector<Row>& rows, Choose choose) {
  constexpr int kTries = 5;
  double sum = 0;
  std::vector<float> hot(rows[0].logits.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    double least = 1e9;
    for (int t = 0; t < kTries; ++t) {
      std::copy(rows[i].logits.begin(), rows[i].logits.end(), hot.begin());
      const auto start = Clock::now();
      choose(i, std::span<float>(hot));
      least = std::min(least, microseconds_since(start));
    }
    sum += least;
  }
  return sum / static_cast<double>(rows.size());
}

int run(const char* path, int n_rows) {
  auto engine = Engine::open(path);
  if (!engine) {
    fmt::print(stderr, "{}\n", engine.error().message);
    return 2;
  }
  const KernelTable& table = *choose_kernel_table().value_or(kernel_tables().back());
  const Recorded recorded = record(*engine, n_rows, table);
  const int vocab_size = engine->model().info().vocab_size;
  fmt::print("{} rows of {} logits, {}; a pass of one row {:.0f} us on {} threads\n",
             recorded.rows.size(), vocab_size, table.variant, recorded.pass_us, engine->threads());

  int sum = 0;  // so that no choice is left out
  const double greedy =
      mean_us(recorded.rows, [&](size_t, std::span<float> logits) { sum += argmax(logits); });
  fmt::print("{:<44}{:8.1f} us\n", "greedy", greedy);
  const auto measure = [&](const char* name, const SamplingOptions& options) {
    Sampler sampler(options, vocab_size, table);
    size_t at = recorded.rows.size();
    const double us = mean_us(recorded.rows, [&](size_t i, std::span<float> logits) {
      if (i != at && (options.edits_logits())) {
        const Row& row = recorded.rows[i];
        sampler.begin(row.prompt, static_cast<int>(row.prompt.size()) + n_rows);
        sampler.commit(row.output);
      }
      at = i;
      sum += sampler.draw(logits, static_cast<int>(i));
    });
    fmt::print("{:<44}{:8.1f} us  {:+.2f} % of a pass over greedy\n", name, us,
               100 * (us - greedy) / recorded.pass_us);
  };
  for (const double t : {0.5, 0.8, 1.0, 1.5})
    measure(fmt::format("temperature {}", t).c_str(), {.temperature = t});
  for (const int k : {1, 40, 1000})
    measure(fmt::format("temperature 0.8, top-k {}", k).c_str(), {.temperature = 0.8, .top_k = k});
  for (const double p : {0.5, 0.9, 0.95, 0.99})
    measure(fmt::format("temperature 0.8, top-p {}", p).c_str(), {.temperature = 0.8, .top_p = p});
  for (const double p : {0.9, 0.95})
    measure(fmt::format("temperature 1, top-p {}", p).c_str(), {.temperature = 1, .top_p = p});
  for (const double p : {0.95, 0.99})
    measure(fmt::format("temperature 1.5, top-p {}", p).c_str(), {.temperature = 1.5, .top_p = p});
  measure("temperature 0.8, min-p 0.05", {.temperature = 0.8, .min_p = 0.05});
  measure("temperature 0.8, top-k 40, top-p 0.95, min-p",
          {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05});
  measure("temperature 0, repetition 1.1", {.repetition_penalty = 1.1});
  measure("all of these", {.repetition_penalty = 1.1,
                           .frequency_penalty = 0.1,
                           .presence_penalty = 0.1,
                           .logit_bias = {{5, 1}},
                           .temperature = 0.8,
                           .top_k = 40,
                           .top_p = 0.95,
                           .min_p = 0.05});
  return sum == -1 ? 1 : 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "sampling_cost MODEL [ROWS]\n");
    return 2;
  }
  return paceline::run(argv[1], argc > 2 ? std::max(4, std::atoi(argv[2])) : 400);
}

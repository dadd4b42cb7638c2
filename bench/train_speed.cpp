// How many position-depths a second a training step takes: forward, loss, backward and optimiser of
// a head at the size of SmolLM2-135M's over random rows. tools/oracle/train_speed.py is the same
// in PyTorch.
//
//   train_speed [THREADS] [ROWS] [ROWS A SEQUENCE] [DEPTHS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "kernels/rope.h"
#include "train/choose.h"
#include "train/net.h"
#include "train/optimiser.h"

namespace {

using namespace paceline;
using namespace paceline::train;

constexpr int kDim = 576, kHiddenDim = 1536, kHeads = 9, kKvHeads = 3, kHeadDim = 64;
constexpr int kWords = 8192;

std::vector<float> random_values(size_t n, float size) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> values(n);
  for (float& x : values) x = normal(random);
  return values;
}

Layout layout_of_head() {
  Layout layout;
  const std::string layer = "mtp.layers.0.";
  layout.add("mtp.fc.weight", {kDim, 2 * kDim});
  layout.add("mtp.pre_fc_norm_embedding.weight", {kDim});
  layout.add("mtp.pre_fc_norm_hidden.weight", {kDim});
  layout.add(layer + "input_layernorm.weight", {kDim});
  layout.add(layer + "self_attn.q_proj.weight", {kHeads * kHeadDim, kDim});
  layout.add(layer + "self_attn.k_proj.weight", {kKvHeads * kHeadDim, kDim});
  layout.add(layer + "self_attn.v_proj.weight", {kKvHeads * kHeadDim, kDim});
  layout.add(layer + "self_attn.o_proj.weight", {kDim, kHeads * kHeadDim});
  layout.add(layer + "post_attention_layernorm.weight", {kDim});
  layout.add(layer + "mlp.gate_proj.weight", {kHiddenDim, kDim});
  layout.add(layer + "mlp.up_proj.weight", {kHiddenDim, kDim});
  layout.add(layer + "mlp.down_proj.weight", {kDim, kHiddenDim});
  layout.add("mtp.norm.weight", {kDim});
  return layout;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  const auto flag = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  const int threads = flag(1, available_cpus());
  const int rows = flag(2, 1024);
  const int per_sequence = flag(3, 256);
  const int depths = flag(4, 4);
  ThreadPool pool(threads);
  const Layout layout = layout_of_head();
  std::vector<float> weights = random_values(layout.size(), 0.02f);
  const auto embedding = random_values(static_cast<size_t>(rows + depths) * kDim, 1);
  const auto hidden = random_values(static_cast<size_t>(rows) * kDim, 1);
  const auto words = random_values(static_cast<size_t>(kWords) * kDim, 0.1f);

  for (const TrainTable* table : train_tables()) {
    if (table->per_unit == 1 && table != train_tables().back() && argc > 5) continue;
    const Tools tools{table, &pool};
    const NetShape shape{.dim = kDim,
                         .hidden_dim = kHiddenDim,
                         .attention = {kHeads, kKvHeads, kHeadDim},
                         .norm_eps = 1e-5f,
                         .frequencies = rope_frequencies(100000, kHeadDim),
                         .depths = depths};
    HeadNet net(shape, layout, tools);
    VocabularyLoss vocabulary({words.data(), kWords, kDim}, tools);
    NetBatch batch{.segments = {},
                   .hidden = {hidden.data(), rows, kDim},
                   .final_hidden = {hidden.data(), rows, kDim},
                   .embedding = {embedding.data(), rows + depths - 1, kDim},
                   .weights = {},
                   .hard = {}};
    for (int first = 0; first < rows; first += per_sequence)
      batch.segments.push_back({first, std::min(per_sequence, rows - first)});
    batch.weights.assign(depths, std::vector<float>(rows, 1.0f / static_cast<float>(rows)));
    batch.hard.assign(depths, std::vector<int>(rows, 7));
    std::vector<float> gradient(layout.size());
    Optimiser optimiser(layout, {});
    double spent[5] = {};
    int steps = 0;
    std::clock_t cpu = 0;
    for (; steps < 30 && (steps < 3 || spent[4] < 6); ++steps) {
      if (steps == 1) cpu = std::clock();
      const double t0 = now();
      net.set_weights(weights);
      const double t1 = now();
      net.forward(batch);
      const double t2 = now();
      std::vector<LossSums> sums(depths);
      net.loss(batch, Targets::Soft, vocabulary, sums);
      const double t3 = now();
      net.backward(batch, gradient);
      const double t4 = now();
      optimiser.step(1e-4f, weights, gradient, tools);
      const double t5 = now();
      if (steps == 0) continue;  // memory comes now
      const double parts[5] = {t1 - t0 + t5 - t4, t2 - t1, t3 - t2, t4 - t3, t5 - t0};
      for (int i = 0; i < 5; ++i) spent[i] += parts[i];
    }
    const int timed = steps - 1;
    const double cpu_seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    std::printf(
        "%-12s %6.0f position-depths/s, %6.0f a second of CPU time; ms a step: forward %.1f, loss "
        "%.1f, backward %.1f, "
        "weights %.1f\n",
        table->name, rows * depths * timed / spent[4], rows * depths * timed / cpu_seconds,
        1e3 * spent[1] / timed, 1e3 * spent[2] / timed, 1e3 * spent[3] / timed,
        1e3 * spent[0] / timed);
    std::fflush(stdout);
  }
  return 0;
}

#include "train/net.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/mapped_file.h"
#include "io/safetensors_reader.h"
#include "kernels/rope.h"
#include "train/choose.h"

namespace paceline::train {
namespace {

using Json = nlohmann::json;

// A tiny head with its loss and gradients from PyTorch (tools/oracle/make_train_golden.py).
struct Golden {
  Json sizes;
  NetShape shape;
  Layout layout;
  std::vector<float> weights, gradient;
  std::map<std::string, std::vector<float>> rows;
  std::vector<Segment> segments;
  int n_rows = 0;
  Targets targets = Targets::Soft;
};

std::map<std::string, Golden> read_goldens() {
  const auto mapped = MappedFile::open(PACELINE_SOURCE_DIR "/tests/golden/train_head.safetensors");
  const auto contents = read_safetensors(mapped->bytes(), "train_head.safetensors");
  std::map<std::string, Golden> goldens;
  for (const auto& [key, text] : contents->metadata) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) continue;
    Golden& g = goldens[key];
    g.sizes = json;
    g.shape = {.dim = json["dim"],
               .hidden_dim = json["hidden_dim"],
               .attention = {json["heads"], json["kv_heads"], json["head_dim"]},
               .norm_eps = json["eps"],
               .frequencies = rope_frequencies(json["theta"], json["head_dim"]),
               .modules = json["modules"],
               .depths = json["depths"],
               .recycles_normed = json["tap"] == "after",
               .rounds_hidden = false,
               .mask = json["mask"] == "served" ? Mask::Served : Mask::Recipe,
               .max_rows = 16};
    g.targets = json["targets"] == "soft"   ? Targets::Soft
                : json["targets"] == "hard" ? Targets::Hard
                                            : Targets::Mixed;
    for (const int n : json["segments"]) {
      g.segments.push_back({g.n_rows, n});
      g.n_rows += n;
    }
  }
  for (const Tensor& tensor : contents->tensors) {
    const size_t slash = tensor.name.find('/');
    Golden& g = goldens.at(tensor.name.substr(0, slash));
    const std::string name = tensor.name.substr(slash + 1);
    std::vector<float> values(tensor.elements());
    dequantize(tensor, 0, values);
    if (name.starts_with("w/")) {
      g.layout.add(name.substr(2), tensor.shape);
      g.weights.insert(g.weights.end(), values.begin(), values.end());
    } else {
      g.rows[name] = std::move(values);
    }
  }
  for (auto& [key, g] : goldens)
    for (const Parameter& p : g.layout.parameters()) {
      const auto& values = g.rows.at("g/" + p.name);
      g.gradient.insert(g.gradient.end(), values.begin(), values.end());
    }
  return goldens;
}

// The batch of the golden file: rows of sequence i weigh beta^(depth - 1) over their number.
NetBatch batch_of(const Golden& g) {
  const int dim = g.shape.dim;
  const auto mat = [&](const char* name, int rows) {
    return Mat<const float>(g.rows.at(name).data(), rows, dim);
  };
  NetBatch batch{.segments = g.segments,
                 .hidden = mat("hidden", g.n_rows),
                 .final_hidden = mat("final_hidden", g.n_rows),
                 .embedding = mat("embedding", g.n_rows + g.shape.depths - 1),
                 .weights = {},
                 .hard = {}};
  const double beta = g.sizes["beta"];
  double norm = 0;
  for (int d = 0; d < g.shape.depths; ++d) norm += std::pow(beta, d);
  const auto& hard = g.rows.at("hard");
  for (int depth = 1; depth <= g.shape.depths; ++depth) {
    std::vector<float> weights(g.n_rows, 0.0f);
    std::vector<int> targets(g.n_rows, -1);
    for (const Segment& s : g.segments) {
      int n = 0;
      for (int pass = 0; pass < 2; ++pass)
        for (int row = 0; row + depth < s.rows; ++row) {
          const int at = s.first + row;
          targets[at] = static_cast<int>(hard[at + depth]);
          if (g.targets == Targets::Hard && targets[at] < 0) continue;
          if (pass == 0)
            ++n;
          else
            weights[at] = static_cast<float>(std::pow(beta, depth - 1) / norm / n /
                                             static_cast<double>(g.segments.size()));
        }
    }
    batch.weights.push_back(weights);
    batch.hard.push_back(targets);
  }
  return batch;
}

double total_loss(std::span<const LossSums> sums) {
  double loss = 0;
  for (const LossSums& sum : sums) loss += sum.loss;
  return loss;
}

TEST(HeadNet, LossAndEveryGradientAreThoseOfPyTorch) {
  ThreadPool pool(2);
  for (auto& [name, g] : read_goldens()) {
    for (const TrainTable* table : train_tables()) {
      const Tools tools{table, &pool};
      const double tolerance = table->per_unit == 1 ? 2e-5 : 2e-2;
      HeadNet net(g.shape, g.layout, tools);
      net.set_weights(g.weights);
      const Mat<const float> words(g.rows.at("words").data(), g.sizes["words"], g.shape.dim);
      VocabularyLoss vocabulary(words, tools);
      const NetBatch batch = batch_of(g);
      net.forward(batch);
      for (int depth = 1; depth <= g.shape.depths; ++depth) {
        const auto& want = g.rows.at("y/" + std::to_string(depth));
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(net.y(depth).data[i], want[i], 4 * tolerance)
              << name << " on " << table->name << ", y of depth " << depth << ", element " << i;
      }
      std::vector<LossSums> sums(g.shape.depths);
      net.loss(batch, g.targets, vocabulary, sums);
      for (int depth = 1; depth <= g.shape.depths; ++depth)
        EXPECT_NEAR(sums[depth - 1].loss, g.rows.at("loss")[depth - 1], tolerance)
            << name << " on " << table->name << ", depth " << depth;
      std::vector<float> gradient(g.layout.size());
      net.backward(batch, gradient);
      for (const Parameter& p : g.layout.parameters()) {
        double wrong = 0;
        double size = 0;
        for (int64_t i = p.offset; i < p.offset + p.count; ++i) {
          wrong += std::pow(gradient[i] - g.gradient[i], 2);
          size += std::pow(g.gradient[i], 2);
        }
        EXPECT_LE(std::sqrt(wrong), 2 * tolerance * std::sqrt(size) + 0.02 * tolerance)
            << name << " on " << table->name << ": " << p.name;
      }
    }
  }
}

TEST(HeadNet, GradientsAreThoseOfFiniteDifferences) {
  ThreadPool pool(1);
  const Tools tools{train_tables().front(), &pool};
  for (const auto& [name, golden] : read_goldens()) {
    const Golden& g = golden;
    const Mat<const float> words(g.rows.at("words").data(), g.sizes["words"], g.shape.dim);
    VocabularyLoss vocabulary(words, tools);
    const NetBatch batch = batch_of(g);
    HeadNet net(g.shape, g.layout, tools);
    std::vector<float> weights = g.weights;
    const auto loss = [&] {
      net.set_weights(weights);
      net.forward(batch);
      std::vector<LossSums> sums(g.shape.depths);
      net.loss(batch, g.targets, vocabulary, sums);
      return total_loss(sums);
    };
    loss();
    std::vector<float> gradient(g.layout.size());
    net.backward(batch, gradient);
    std::mt19937 random(1);
    for (const Parameter& p : g.layout.parameters()) {
      // Along one direction in each tensor.
      std::vector<float> direction(p.count);
      double expected = 0;
      for (int64_t i = 0; i < p.count; ++i) {
        direction[i] = std::normal_distribution<float>()(random);
        expected += double(direction[i]) * gradient[p.offset + i];
      }
      constexpr float kStep = 1e-3f;
      double ends[2];
      for (int side = 0; side < 2; ++side) {
        for (int64_t i = 0; i < p.count; ++i)
          weights[p.offset + i] =
              g.weights[p.offset + i] + (side == 0 ? -kStep : kStep) * direction[i];
        ends[side] = loss();
      }
      for (int64_t i = 0; i < p.count; ++i) weights[p.offset + i] = g.weights[p.offset + i];
      EXPECT_NEAR((ends[1] - ends[0]) / (2 * kStep), expected, 1e-3 + 0.01 * std::abs(expected))
          << name << ": " << p.name;
    }
  }
}

TEST(HeadNet, BitsDoNotDependOnTheNumberOfThreads) {
  auto goldens = read_goldens();
  for (const TrainTable* table : train_tables())
    for (auto& [name, g] : goldens) {
      std::vector<float> first;
      for (int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        const Tools tools{table, &pool};
        const Mat<const float> words(g.rows.at("words").data(), g.sizes["words"], g.shape.dim);
        VocabularyLoss vocabulary(words, tools);
        const NetBatch batch = batch_of(g);
        HeadNet net(g.shape, g.layout, tools);
        net.set_weights(g.weights);
        net.forward(batch);
        std::vector<LossSums> sums(g.shape.depths);
        net.loss(batch, g.targets, vocabulary, sums);
        std::vector<float> gradient(g.layout.size());
        net.backward(batch, gradient);
        if (first.empty()) first = gradient;
        EXPECT_EQ(first, gradient) << name << " on " << table->name << ", " << threads;
      }
    }
}

TEST(VocabularyLoss, DepthsAreWeighedByWhatLimitsTheExpectedLength) {
  // Chances 0.5 and 0.2, smoothed by a half: 0.75 and 0.6. Products: 0.75, 0.45.
  const std::vector<std::vector<float>> chances = {{0.5f, 0.9f}, {0.2f, 0.9f}};
  std::vector<std::vector<float>> weights = {{1, 0}, {1, 0}};
  weigh_by_length(chances, 0.5, weights);
  EXPECT_NEAR(weights[0][0], 2 * 1.2 / (1.2 + 0.45), 1e-6);
  EXPECT_NEAR(weights[1][0], 2 * 0.45 / (1.2 + 0.45), 1e-6);
  EXPECT_EQ(weights[0][1], 0);
  EXPECT_EQ(weights[1][1], 0);
}

TEST(VocabularyLoss, ChancesAreThoseOfTheSoftmax) {
  ThreadPool pool(2);
  auto goldens = read_goldens();
  Golden& g = goldens.at("served");
  for (const TrainTable* table : train_tables()) {
    const Tools tools{table, &pool};
    const int n_words = g.sizes["words"];
    const auto& words = g.rows.at("words");
    VocabularyLoss vocabulary({words.data(), n_words, g.shape.dim}, tools);
    const NetBatch batch = batch_of(g);
    const LossDepth depth{.depth = 1,
                          .y = batch.hidden,
                          .weights = batch.weights[0],
                          .hard = batch.hard[0],
                          .d_y = {}};
    std::vector<float> chances;
    vocabulary.chances({&depth, 1}, {&chances, 1}, tools);
    for (int row = 0; row < batch.rows(); ++row) {
      double sum = 0;
      double own = 0;
      for (int word = 0; word < n_words; ++word) {
        double logit = 0;
        for (int i = 0; i < g.shape.dim; ++i)
          logit += double(batch.hidden.row(row)[i]) * words[word * g.shape.dim + i];
        sum += std::exp(logit);
        if (word == batch.hard[0][row]) own = std::exp(logit);
      }
      const bool counts = batch.weights[0][row] > 0;
      EXPECT_NEAR(chances[row], counts ? own / sum : 0, table->per_unit == 1 ? 1e-5 : 5e-3);
    }
  }
}

// Rows without a target: what stands there must not matter, and must not learn.
TEST(HeadNet, RowsWithoutTargetLeaveNoTrace) {
  ThreadPool pool(2);
  const auto goldens = read_goldens();
  for (const TrainTable* table : train_tables()) {
    const Tools tools{table, &pool};
    Golden g = goldens.at("served");
    const Mat<const float> words(g.rows.at("words").data(), g.sizes["words"], g.shape.dim);
    VocabularyLoss vocabulary(words, tools);
    std::vector<float> gradients[2];
    std::vector<LossSums> sums[2];
    for (int other = 0; other < 2; ++other) {
      NetBatch batch = batch_of(g);
      // Only the first sequence counts: 7 of 15 rows; of these the last has no target.
      for (auto& weights : batch.weights) std::fill(weights.begin() + 7, weights.end(), 0.0f);
      std::vector<float> embedding = g.rows.at("embedding");
      std::vector<float> hidden = g.rows.at("hidden");
      std::vector<float> final_hidden = g.rows.at("final_hidden");
      const int dim = g.shape.dim;
      if (other == 1) {
        for (size_t i = static_cast<size_t>(7) * dim; i < hidden.size(); ++i)
          hidden[i] = final_hidden[i] = static_cast<float>(i % 13) - 6;
        // Embeddings of tokens behind the last that has a target to come: depth s reads row p + s -
        // 1, and p + s < 7.
        for (size_t i = static_cast<size_t>(6) * dim; i < embedding.size(); ++i)
          embedding[i] = static_cast<float>(i % 11) - 5;
      }
      batch.embedding = {embedding.data(), batch.embedding.rows, dim};
      batch.hidden = {hidden.data(), batch.hidden.rows, dim};
      batch.final_hidden = {final_hidden.data(), batch.final_hidden.rows, dim};
      HeadNet net(g.shape, g.layout, tools);
      net.set_weights(g.weights);
      net.forward(batch);
      sums[other].resize(g.shape.depths);
      net.loss(batch, Targets::Soft, vocabulary, sums[other]);
      gradients[other].resize(g.layout.size());
      net.backward(batch, gradients[other]);
    }
    for (int d = 0; d < g.shape.depths; ++d) {
      EXPECT_EQ(sums[0][d].loss, sums[1][d].loss) << table->name;
      EXPECT_EQ(sums[0][d].targets, 6 - d);
    }
    EXPECT_EQ(gradients[0], gradients[1]) << table->name;
  }
}

}  // namespace
}  // namespace paceline::train

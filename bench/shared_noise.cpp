// What it buys a drafter to draw with the noise that the trunk's token will be drawn with.
//
//   shared_noise MODEL [TOKENS]
//
// The trunk writes text at a temperature. At each of its positions drafters that know other logits
// guess the token: the same weights in another type, and the trunk itself seeing the last few
// tokens only. Each guesses three times: drawn with the shared noise, drawn with noise of its own,
// and its most likely token. Shown is the share of guesses that were the trunk's token (acceptance
// at depth 1), and sum min(p, q), above which no guess with the drafter's distribution can come.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kernels/argmax.h"
#include "kernels/choose.h"
#include "spec/sampling.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;
using Logits = std::vector<float>;

constexpr const char* kPrompts[] = {"Tell me a story about a lighthouse keeper.",
                                    "Write a function in Python that sorts a list.",
                                    "What is the difference between a virus and a bacterium?",
                                    "Give me a recipe for bread, step by step."};

const KernelTable& table() {
  static const KernelTable* chosen = choose_kernel_table().value_or(kernel_tables().back());
  return *chosen;
}

// A sequence read token by token.
class Reader {
 public:
  Reader(const Engine& engine, int capacity)
      : model_(engine.model()),
        state_(*model_.make_state(capacity, engine.cache_type())),
        workspace_(*model_.make_workspace(kRows, 1)),
        block_(kRows) {}

  // Logits behind the last of these tokens; valid until the next call.
  std::span<float> read(std::span<const TokenId> tokens) {
    for (;;) {
      const size_t n = std::min<size_t>(tokens.size(), kRows);
      block_.reset(state_->length());
      for (const TokenId token : tokens.first(n)) block_.add(token);
      const TrunkOut out = model_.forward(block_, *state_, LogitRows::Last, *workspace_);
      state_->commit(block_.rows());
      tokens = tokens.subspan(n);
      if (tokens.empty()) return out.logits.row(0);
    }
  }

 private:
  static constexpr int kRows = 64;
  const Model& model_;
  std::unique_ptr<SequenceState> state_;
  std::unique_ptr<Workspace> workspace_;
  Block block_;
};

struct Guesser {
  std::string name;
  const Engine* engine;
  int window;  // tokens that it sees; 0: all
};

struct Counts {
  int shared = 0;
  int own = 0;
  int likeliest = 0;
  double bound = 0;
};

std::vector<double> softmax(std::span<const float> logits, double temperature) {
  const double top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) sum += p.emplace_back(std::exp((logit - top) / temperature));
  for (double& value : p) value /= sum;
  return p;
}

double overlap(std::span<const float> p_logits, std::span<const float> q_logits,
               double temperature) {
  const auto p = softmax(p_logits, temperature);
  const auto q = softmax(q_logits, temperature);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += std::min(p[i], q[i]);
  return sum;
}

void study(const Engine& trunk, const std::vector<Guesser>& guessers, double temperature,
           int n_tokens) {
  const SamplingOptions options{.temperature = temperature, .seed = 1};
  const SamplingOptions other{.temperature = temperature, .seed = 2};
  const int vocab_size = trunk.model().info().vocab_size;
  Sampler sampler(options, vocab_size, table());
  Sampler own(other, vocab_size, table());
  std::vector<Counts> counts(guessers.size());
  int total = 0;
  for (const char* prompt : kPrompts) {
    const ChatMessage message{"user", prompt};
    Tokens text = *trunk.encode_chat({&message, 1});
    const int capacity = static_cast<int>(text.size()) + n_tokens;
    Reader reader(trunk, capacity);
    std::vector<std::unique_ptr<Reader>> whole;  // of those that see all
    for (const Guesser& guesser : guessers)
      whole.push_back(guesser.window > 0 ? nullptr
                                         : std::make_unique<Reader>(*guesser.engine, capacity));
    std::span<const TokenId> unread = text;
    for (int i = 0; i < n_tokens / static_cast<int>(std::size(kPrompts)); ++i) {
      const auto row = reader.read(unread);
      const Logits logits(row.begin(), row.end());
      const int position = static_cast<int>(text.size());
      const TokenId token = sampler.draw(row, position);
      ++total;
      for (size_t g = 0; g < guessers.size(); ++g) {
        std::span<float> guess;
        std::unique_ptr<Reader> windowed;
        if (guessers[g].window > 0) {
          const size_t window = std::min<size_t>(guessers[g].window, text.size());
          windowed = std::make_unique<Reader>(*guessers[g].engine, static_cast<int>(window));
          guess = windowed->read(std::span(text).last(window));
        } else {
          guess = whole[g]->read(unread);
        }
        counts[g].shared += sampler.draw(guess, position) == token;
        counts[g].own += own.draw(guess, position) == token;
        counts[g].likeliest += argmax(guess) == token;
        counts[g].bound += overlap(logits, guess, temperature);
      }
      text.push_back(token);
      unread = std::span(text).last(1);
    }
  }
  for (size_t g = 0; g < guessers.size(); ++g) {
    const auto share = [&](double n) { return n / total; };
    fmt::print("{:<12} {:<24}{:8.3f}{:8.3f}{:11.3f}{:16.3f}\n", temperature, guessers[g].name,
               share(counts[g].shared), share(counts[g].own), share(counts[g].likeliest),
               share(counts[g].bound));
  }
}

int run(const char* path, int n_tokens) {
  auto trunk = Engine::open(path);
  auto bf16 = Engine::open(path, {.weights = WeightsType::BF16});
  if (!trunk || !bf16) {
    fmt::print(stderr, "{}\n", trunk ? bf16.error().message : trunk.error().message);
    return 2;
  }
  const std::vector<Guesser> guessers = {{"the same in bf16", &*bf16, 0},
                                         {"the last 64 tokens", &*trunk, 64},
                                         {"the last 16 tokens", &*trunk, 16},
                                         {"the last 4 tokens", &*trunk, 4}};
  fmt::print("{} tokens a temperature\n", n_tokens);
  fmt::print("{:<12} {:<24}{:>8}{:>8}{:>11}{:>16}\n", "temperature", "drafter", "shared", "own",
             "likeliest", "sum min(p, q)");
  for (const double temperature : {0.5, 0.8, 1.0}) study(*trunk, guessers, temperature, n_tokens);
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "shared_noise MODEL [TOKENS]\n");
    return 2;
  }
  return paceline::run(argv[1], argc > 2 ? std::max(4, std::atoi(argv[2])) : 1000);
}

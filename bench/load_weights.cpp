// How fast a model is loaded: bytes of its tensors a second, from opening the files to a trunk that
// is ready, repacking included.
//
//   load_weights MODEL [THREADS] [TRIES]
//
// Inside the timing: Checkpoint::open and load_model. Not: tokenizer, SHA-256, the program's start,
// giving the memory back. The files are in the page cache after the first try; for a cold one have
// the system drop its caches and ask for one try.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "models/registry.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

int run(const char* path, int threads, int tries) {
  double best = 0;
  for (int i = 0; i < tries; ++i) {
    const auto start = Clock::now();
    const auto checkpoint = Checkpoint::open(path);
    if (!checkpoint) return fmt::print(stderr, "{}\n", checkpoint.error().message), 1;
    const auto model = load_model(*checkpoint, {.threads = threads});
    if (!model) return fmt::print(stderr, "{}\n", model.error().message), 1;
    const std::chrono::duration<double> seconds = Clock::now() - start;
    double bytes = 0;
    for (const Tensor& tensor : checkpoint->tensors())
      bytes += static_cast<double>(tensor.data.size());
    const double rate = bytes / 1e9 / seconds.count();
    best = std::max(best, rate);
    fmt::print("{:.2f} GB in {:.3f} s: {:.2f} GB/s\n", bytes / 1e9, seconds.count(), rate);
  }
  fmt::print("best of {}: {:.2f} GB/s, {} threads\n", tries, best, threads);
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int n_args, char** args) {
  if (n_args < 2) return fmt::print(stderr, "load_weights MODEL [THREADS] [TRIES]\n"), 1;
  return paceline::run(args[1], n_args > 2 ? std::atoi(args[2]) : 2,
                       n_args > 3 ? std::atoi(args[3]) : 5);
}

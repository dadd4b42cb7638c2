// How fast a tokenizer loads and encodes: tokenizer_speed MODEL TEXT_FILE
// MODEL is what `paceline tokenize` takes. One thread; the text is encoded in one call, five times,
// the best and the median are told. Loading is timed from the first byte of the file on, warm.
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/open_text.h"

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: tokenizer_speed MODEL TEXT_FILE\n");
    return 2;
  }
  auto start = std::chrono::steady_clock::now();
  const auto opened = paceline::open_text(argv[1]);
  if (!opened) {
    fmt::print(stderr, "tokenizer_speed: {}\n", opened.error().message);
    return 2;
  }
  fmt::print("{}: loaded in {:.3f} s, at most {:.0f} MB\n", opened->tokenizer->description(),
             seconds_since(start), peak_mb());

  std::ifstream file(argv[2], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<double> rates;
  size_t n_ids = 0;
  for (int run = 0; run < 5; ++run) {
    std::vector<paceline::TokenId> ids;
    start = std::chrono::steady_clock::now();
    opened->tokenizer->encode(text, /*read_specials=*/false, ids);
    rates.push_back(static_cast<double>(text.size()) / 1e6 / seconds_since(start));
    n_ids = ids.size();
  }
  std::sort(rates.begin(), rates.end());
  fmt::print("{:.1f} MB, {} ids: best {:.0f}, median {:.0f} MB/s\n",
             static_cast<double>(text.size()) / 1e6, n_ids, rates.back(), rates[2]);
  return 0;
}

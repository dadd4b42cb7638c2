#include "measure/parity.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "measure/parity_run.h"

namespace paceline::measure {

Kernels ParityRun::kernels(const KernelTable* table, int threads) {
  auto& pool = pools_[threads];
  if (!pool) pool = std::make_unique<ThreadPool>(threads);
  return {table, pool.get(), options.wide};
}

std::vector<int> ParityRun::threads_for(int width) const {
  if (options.depth == ParityDepth::Full) return options.threads;
  return {options.threads[static_cast<size_t>(width) % options.threads.size()]};
}

bool is_slow(const KernelTable& table) {
  return std::string_view(table.isa) == "scalar" ||
         std::string_view(table.variant).find("emulated") != std::string_view::npos;
}

float ParityRandom::value() {
  const uint64_t random = next();
  const auto exponent = 119u + (static_cast<uint32_t>(random >> 32) & 7u);
  return std::bit_cast<float>((static_cast<uint32_t>(random) & 0x807fffffu) | (exponent << 23));
}

std::vector<float> ParityRandom::values(size_t n) {
  std::vector<float> list(n);
  for (float& v : list) v = value();
  return list;
}

std::vector<float> block_of(Mat<const float> x, int first, int rows) {
  std::vector<float> block;
  block.reserve(static_cast<size_t>(rows) * x.cols);
  for (int i = 0; i < rows; ++i) {
    const auto row = x.row((first + i) % x.rows);
    block.insert(block.end(), row.begin(), row.end());
  }
  return block;
}

std::vector<int> parity_threads(int most) {
  std::vector<int> counts = {1, most, 3};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

ParityResult run_parity(const ParityOptions& options) {
  std::vector<ParityPiece> pieces;
  add_products(options, pieces);
  add_joint_products(options, pieces);
  add_attention(options, pieces);
  add_row_operations(options, pieces);
  add_sampling(options, pieces);
  if (!options.only.empty()) {
    std::erase_if(pieces, [&](const ParityPiece& piece) {
      return piece.name.find(options.only) == std::string::npos;
    });
  }
  double total = 0;
  for (const ParityPiece& piece : pieces) total += piece.cost;

  ParityResult result;
  ParityRun run(options, result);
  double done = 0;
  for (const ParityPiece& piece : pieces) {
    if (options.progress) options.progress(piece.name, done / total);
    piece.run(run);
    if (run.stopped()) {
      result.complete = false;
      break;
    }
    done += piece.cost;
  }
  run.tally.finish(result);
  return result;
}

}  // namespace paceline::measure

// What the parts of parity share: the pieces of work, the pools of threads, and random inputs.
// Inside the box only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mat.h"
#include "kernels/kernels.h"
#include "measure/parity_cases.h"
#include "measure/parity_tally.h"

namespace paceline::measure {

class ParityRun {
 public:
  ParityRun(const ParityOptions& given, ParityResult& result) : options(given), result_(result) {}

  const ParityOptions& options;
  ParityTally tally;

  bool stopped() const { return options.stop && options.stop(); }
  Kernels kernels(const KernelTable* table, int threads);
  void not_run(std::string what) { result_.not_run.push_back(std::move(what)); }
  // The numbers of threads for this width: all of them in a full run, else a few in turn.
  std::vector<int> threads_for(int width) const;

 private:
  ParityResult& result_;
  std::map<int, std::unique_ptr<ThreadPool>> pools_;
};

// A part of the whole that can be run by itself.
struct ParityPiece {
  std::string name;  // "product 576 -> 1536 q4_1"
  double cost = 1;   // share of the progress; a multiply-add of one row on one table is 1
  std::function<void(ParityRun&)> run;
};

// A file each; a new operation is another one of these.
void add_products(const ParityOptions& options, std::vector<ParityPiece>& pieces);
void add_joint_products(const ParityOptions& options, std::vector<ParityPiece>& pieces);
void add_attention(const ParityOptions& options, std::vector<ParityPiece>& pieces);
void add_row_operations(const ParityOptions& options, std::vector<ParityPiece>& pieces);
void add_sampling(const ParityOptions& options, std::vector<ParityPiece>& pieces);

// Tables whose products take a hundred times as long as others': given a part of the work.
bool is_slow(const KernelTable& table);

// Random numbers that are the same on every machine (splitmix64: Steele, Lea, Flood 2014).
class ParityRandom {
 public:
  explicit ParityRandom(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
  // Both signs, magnitudes from 2^-8 to 1: sums of them round differently in every order.
  float value();
  std::vector<float> values(size_t n);

 private:
  uint64_t state_;
};

// Rows first, first + 1, ... of x, from the top again behind its last one.
std::vector<float> block_of(Mat<const float> x, int first, int rows);
// Where a block of this width begins: another place for every width, so that neighbours and places
// in the block vary.
inline int first_row_of(int width) { return width * 7 % kParityRows; }

}  // namespace paceline::measure

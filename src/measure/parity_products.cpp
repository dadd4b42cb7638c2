// Parity of the products: a block of every width against its rows alone.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/cases.h"
#include "kernels/matmul.h"
#include "kernels/reference.h"
#include "measure/parity_run.h"
#include "measure/parity_weights.h"

namespace paceline::measure {
namespace {

// How much of a product is compared.
struct Plan {
  double macs;  // multiply-adds of a fast table on one matrix
  int samples;  // outputs held against the definition
  std::vector<int> slow_widths;
};

Plan plan_of(ParityDepth depth) {
  std::vector<int> all(kParityRows);
  std::iota(all.begin(), all.end(), 1);
  switch (depth) {
    case ParityDepth::Quick:
      return {1e9, 4, {1, 2, 3, 5, 16, 17}};
    case ParityDepth::Usual:
      return {1e10, 8, all};
    case ParityDepth::Full:
      break;
  }
  return {1e30, 16, all};
}

// Rows of one block and width that a table computes, all threads together.
double row_passes(const ParityRun& run) {
  double rows = kParityRows;  // each alone
  for (int width = 2; width <= kParityRows; ++width)
    rows += static_cast<double>(width) * static_cast<double>(run.threads_for(width).size());
  return rows;
}

// How many outputs of the matrix are computed: a last tile that is not full stays that.
int outputs_within(double macs, const ProductShape& shape, double passes) {
  const double fit = macs / (passes * shape.n_in);
  if (fit >= shape.n_out) return shape.n_out;
  const int tail = shape.n_out % kTileOutputs;
  const int whole = std::max(static_cast<int>(fit) / kTileOutputs, 4) * kTileOutputs;
  return std::min(whole + tail, shape.n_out);
}

// Neighbouring outputs that are computed as one matrix: whole bands of tiles.
struct Slice {
  int first;
  int n;
};

std::vector<Slice> slices_of(const KernelTable& table, int n_out) {
  constexpr int kBand = kBandTiles * kTileOutputs;
  const int last = (n_out - 1) / kBand * kBand;
  if (!is_slow(table) || last <= kBand) return {{0, n_out}};
  return {{0, kBand}, {last, n_out - last}};
}

// What is added to the product: nothing, or a bias and what was there.
struct Extras {
  const float* bias = nullptr;  // n_out values
  float before = 0;             // what stood in every output
};

class ProductCheck {
 public:
  ProductCheck(ParityRun& run, ParityPlace place, const ParityWeights& weights, Extras extras)
      : run_(run), place_(std::move(place)), weights_(weights), extras_(extras) {}

  // False when stopped.
  bool run(const std::vector<int>& slow_widths);

 private:
  struct Arm {
    const KernelTable* table;
    std::vector<Slice> slices;
    std::vector<float> alone;  // (kParityRows, n_out): every row by itself
    bool agrees = true;        // with the definition
  };

  Mat<float> alone(Arm& arm) const { return {arm.alone.data(), kParityRows, w().n_out}; }
  const PackedMatrix& w() const { return weights_.packed; }
  void begin_arm(const Arm& arm);
  void multiply(const Arm& arm, Mat<const float> x, int threads, Mat<float> y);
  void compute_alone(Arm& arm);
  void compare_with_reference(Arm& arm);
  void compare_with(Arm& arm, Arm& base);
  void compare_block(Arm& arm, int width, int threads);

  ParityRun& run_;
  ParityPlace place_;
  const ParityWeights& weights_;
  const Extras extras_;
  std::vector<float> x_;  // (kParityRows, n_in)
  std::vector<Arm> arms_;
  Activations prepared_;
  std::vector<float> y_;
};

// What follows counts for this table, one row at a time.
void ProductCheck::begin_arm(const Arm& arm) {
  place_.table = arm.table;
  place_.width = 1;
  place_.threads = 1;
  place_.outputs = 0;
  for (const Slice& slice : arm.slices) place_.outputs += slice.n;
}

void ProductCheck::multiply(const Arm& arm, Mat<const float> x, int threads, Mat<float> y) {
  const Kernels kernels = run_.kernels(arm.table, threads);
  std::fill(y.data, y.data + static_cast<int64_t>(y.rows) * y.cols, extras_.before);
  const bool adds = extras_.bias != nullptr;
  for (const Slice& slice : arm.slices) {
    PackedMatrix part = w();
    part.data += slice.first / kTileOutputs * tile_bytes(part.type, part.n_in);
    part.n_out = slice.n;
    // Rows stay as far apart as those of the whole matrix.
    project(x,
            {{part, Mat<float>(y.data + slice.first, y.rows, y.cols),
              adds ? extras_.bias + slice.first : nullptr, adds ? Store::Add : Store::Overwrite}},
            prepared_, kernels);
  }
}

void ProductCheck::compute_alone(Arm& arm) {
  arm.alone.resize(static_cast<size_t>(kParityRows) * w().n_out);
  const Mat<const float> x(x_.data(), kParityRows, w().n_in);
  for (int row = 0; row < kParityRows; ++row)
    multiply(arm, x.middle(row, 1), 1, alone(arm).middle(row, 1));
}

void ProductCheck::compare_with_reference(Arm& arm) {
  for (size_t i = 0; i < weights_.sampled.size(); ++i) {
    const int output = weights_.sampled[i];
    const bool computed = std::any_of(arm.slices.begin(), arm.slices.end(), [&](const Slice& s) {
      return output >= s.first && output < s.first + s.n;
    });
    if (!computed) continue;
    for (int row = 0; row < kParityRows; ++row) {
      const std::span<const float> x(x_.data() + static_cast<size_t>(row) * w().n_in, w().n_in);
      float wanted = reference::product(w().type, x, weights_.rows[i].data(), arm.table->numerics);
      if (extras_.bias != nullptr) wanted = extras_.before + (wanted + extras_.bias[output]);
      const float* got = &alone(arm).row(row)[output];
      arm.agrees = arm.agrees && std::bit_cast<uint32_t>(*got) == std::bit_cast<uint32_t>(wanted);
      run_.tally.compare(place_, "reference", row, std::span<const float>(got, 1),
                         std::span<const float>(&wanted, 1), output);
    }
  }
}

void ProductCheck::compare_with(Arm& arm, Arm& base) {
  for (const Slice& slice : arm.slices) {
    for (int row = 0; row < kParityRows; ++row) {
      const std::span<const float> got = alone(arm).row(row);
      const std::span<const float> wanted = alone(base).row(row);
      run_.tally.compare(place_, base.table->variant, row, got.subspan(slice.first, slice.n),
                         wanted.subspan(slice.first, slice.n), slice.first);
    }
  }
}

void ProductCheck::compare_block(Arm& arm, int width, int threads) {
  place_.width = width;
  place_.threads = threads;
  const int first = first_row_of(width);
  const auto x = block_of({x_.data(), kParityRows, w().n_in}, first, width);
  const Mat<float> y(y_.data(), width, w().n_out);
  multiply(arm, {x.data(), width, w().n_in}, threads, y);
  for (int row = 0; row < width; ++row) {
    const std::span<const float> got = y.row(row);
    const std::span<const float> wanted = alone(arm).row((first + row) % kParityRows);
    for (const Slice& slice : arm.slices)
      run_.tally.compare(place_, "alone", row, got.subspan(slice.first, slice.n),
                         wanted.subspan(slice.first, slice.n), slice.first);
  }
}

bool ProductCheck::run(const std::vector<int>& slow_widths) {
  ParityRandom random(static_cast<uint64_t>(w().n_in));
  x_ = random.values(static_cast<size_t>(kParityRows) * w().n_in);
  prepared_ = *Activations::make(kParityRows, w().n_in);
  y_.resize(static_cast<size_t>(kParityRows) * w().n_out);
  for (const KernelTable* table : run_.options.tables) {
    begin_arm(arms_.emplace_back(Arm{table, slices_of(*table, w().n_out), {}}));
    compute_alone(arms_.back());
    compare_with_reference(arms_.back());
    if (run_.stopped()) return false;
  }
  // The others are held against a table that computed everything and that the definition does not
  // contradict, so that a fault is told of the table that has it.
  const auto is_base = [&](const Arm& arm) {
    return arm.agrees && (!is_slow(*arm.table) || arms_.size() == 1);
  };
  auto base = std::find_if(arms_.begin(), arms_.end(), is_base);
  if (base == arms_.end()) base = arms_.end() - 1;
  for (Arm& arm : arms_) {
    begin_arm(arm);
    if (&arm != &*base) compare_with(arm, *base);
    for (int width = 2; width <= kParityRows; ++width) {
      if (is_slow(*arm.table) &&
          std::find(slow_widths.begin(), slow_widths.end(), width) == slow_widths.end())
        continue;
      for (const int threads : run_.threads_for(width)) {
        compare_block(arm, width, threads);
        if (run_.stopped()) return false;
      }
    }
  }
  return true;
}

void check_product(ParityRun& run, WeightType type, const ProductShape& shape, bool with_extras) {
  const Plan plan = plan_of(run.options.depth);
  const int n_out = outputs_within(plan.macs, shape, row_passes(run));
  const std::string name = fmt::format("{} -> {}", shape.n_in, shape.n_out);
  const int most = *std::max_element(run.options.threads.begin(), run.options.threads.end());
  const auto weights =
      draw_weights(type, n_out, shape.n_in, plan.samples,
                   static_cast<uint64_t>(shape.n_in) * 1000003u + static_cast<uint64_t>(n_out),
                   *run.kernels(run.options.tables[0], most).pool);
  const std::string op = with_extras ? "product, bias, add" : "product";
  if (!weights) {
    run.not_run(fmt::format("{} {} {}: {}", op, name, to_string(type), weights.error().message));
    return;
  }
  const auto bias = ParityRandom(5).values(static_cast<size_t>(n_out));
  ProductCheck check(run, {op, name, to_string(type)}, *weights,
                     with_extras ? Extras{bias.data(), 0.625f} : Extras{});
  check.run(plan.slow_widths);
}

bool fits(WeightType type, int n_in) { return !is_quantized(type) || n_in % kQuantBlock == 0; }

}  // namespace

void add_products(const ParityOptions& options, std::vector<ParityPiece>& pieces) {
  const Plan plan = plan_of(options.depth);
  for (const ProductShape& shape : kParityProducts) {
    // Where whole matrices are not asked for, those of 5376 -> 21504 say as much as a larger one.
    const double size = static_cast<double>(shape.n_in) * shape.n_out;
    if (options.depth != ParityDepth::Full && size > 1e9) continue;
    for (const WeightType type : kWeightTypes) {
      if (!fits(type, shape.n_in)) continue;
      const double cost = std::min(plan.macs, size * 1000) + 1e8;
      pieces.push_back(
          {fmt::format("product {} -> {} {}", shape.n_in, shape.n_out, to_string(type)), cost,
           [=](ParityRun& run) { check_product(run, type, shape, false); }});
      if (size < 1e6)
        pieces.push_back({fmt::format("product, bias, add {} -> {} {}", shape.n_in, shape.n_out,
                                      to_string(type)),
                          cost, [=](ParityRun& run) { check_product(run, type, shape, true); }});
    }
  }
}

}  // namespace paceline::measure

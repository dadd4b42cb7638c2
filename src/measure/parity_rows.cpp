#include "measure/parity_rows.h"

#include <fmt/core.h>

#include <algorithm>

namespace paceline::measure {
namespace {

class RowCheck {
 public:
  RowCheck(ParityRun& run, const RowOperation& operation)
      : run_(run),
        operation_(operation),
        place_{operation.op, operation.shape, operation.type},
        x_(ParityRandom(static_cast<uint64_t>(operation.inputs) + 77)
               .values(static_cast<size_t>(kParityRows) * operation.inputs)) {}

  void run();

 private:
  struct Arm {
    const KernelTable* table;
    std::vector<std::byte> alone;  // every row by itself
    bool agrees = true;            // with the definition
  };

  std::span<const std::byte> alone(const Arm& arm, int row) const {
    return std::span(arm.alone).subspan(row * operation_.out_bytes, operation_.out_bytes);
  }
  void compute(const KernelTable* table, int threads, int first, int rows, std::byte* out);
  void compare(std::string_view against, int row, std::span<const std::byte> got,
               std::span<const std::byte> wanted) {
    run_.tally.compare(place_, against, row, 0, got.data(), wanted.data(), got.size(),
                       operation_.element);
  }
  bool is_compared(const KernelTable& table, int width) const;
  void compare_with_reference(Arm& arm);
  void compare_block(const Arm& arm, int width, int threads);

  ParityRun& run_;
  const RowOperation& operation_;
  ParityPlace place_;
  std::vector<float> x_;                        // (kParityRows, inputs)
  std::vector<std::vector<std::byte>> wanted_;  // of every row, by the definition
};

// A quick run leaves most widths of a slow table out.
bool RowCheck::is_compared(const KernelTable& table, int width) const {
  if (!is_slow(table) || run_.options.depth != ParityDepth::Quick) return true;
  return width == 2 || width == 5 || width == 17;
}

void RowCheck::compute(const KernelTable* table, int threads, int first, int rows, std::byte* out) {
  std::vector<int> which(rows);
  for (int i = 0; i < rows; ++i) which[i] = (first + i) % kParityRows;
  const auto x = block_of({x_.data(), kParityRows, operation_.inputs}, first, rows);
  operation_.compute(run_.kernels(table, threads), {x.data(), rows, operation_.inputs}, which, out);
}

void RowCheck::compare_with_reference(Arm& arm) {
  if (!operation_.reference) return;
  for (int row = static_cast<int>(wanted_.size()); row < kParityRows; ++row)
    wanted_.push_back(operation_.reference(
        Mat<const float>(x_.data(), kParityRows, operation_.inputs).row(row), row));
  for (int row = 0; row < kParityRows; ++row) {
    const auto got = alone(arm, row);
    arm.agrees = arm.agrees && std::equal(got.begin(), got.end(), wanted_[row].begin());
    compare("reference", row, got, wanted_[row]);
  }
}

void RowCheck::compare_block(const Arm& arm, int width, int threads) {
  place_.width = width;
  place_.threads = threads;
  const int first = first_row_of(width);
  std::vector<std::byte> got(width * operation_.out_bytes);
  compute(arm.table, threads, first, width, got.data());
  for (int row = 0; row < width; ++row)
    compare(
        "alone", row,
        std::span<const std::byte>(got).subspan(row * operation_.out_bytes, operation_.out_bytes),
        alone(arm, (first + row) % kParityRows));
}

void RowCheck::run() {
  place_.outputs = static_cast<int64_t>(operation_.out_bytes / operation_.element);
  std::vector<Arm> arms;
  for (const KernelTable* table : run_.options.tables) {
    place_.table = table;
    Arm& arm = arms.emplace_back(Arm{table, {}});
    arm.alone.resize(kParityRows * operation_.out_bytes);
    for (int row = 0; row < kParityRows; ++row)
      compute(table, 1, row, 1, arm.alone.data() + row * operation_.out_bytes);
    compare_with_reference(arm);
  }
  auto base = std::find_if(arms.begin(), arms.end(), [](const Arm& arm) { return arm.agrees; });
  if (base == arms.end()) base = arms.begin();
  for (const Arm& arm : arms) {
    place_.table = arm.table;
    place_.width = 1;
    place_.threads = 1;
    if (&arm != &*base)
      for (int row = 0; row < kParityRows; ++row)
        compare(base->table->variant, row, alone(arm, row), alone(*base, row));
    if (!operation_.in_blocks) continue;
    for (int width = 2; width <= kParityRows; ++width) {
      if (!is_compared(*arm.table, width)) continue;
      for (const int threads : run_.threads_for(width)) compare_block(arm, width, threads);
      if (run_.stopped()) return;
    }
  }
}

}  // namespace

ParityPiece piece_of(RowOperation operation) {
  ParityPiece piece;
  piece.name = fmt::format("{} {} {}", operation.op, operation.shape, operation.type);
  piece.cost = 1e3 * operation.cost;
  piece.run = [operation = std::move(operation)](ParityRun& run) {
    RowCheck(run, operation).run();
  };
  return piece;
}

}  // namespace paceline::measure

// What a pass of a few rows costs beside one of one row, and how far apart two threads run, looked
// at all through a run.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/passes.h"

namespace paceline::measure {

// r(kRows) over the looks of a run.
struct Watched {
  static constexpr int kRows = 4;
  static constexpr int kEnough = 10;  // looks that tell a change from one that was disturbed
  int looks = 0;
  double mean = 0;  // of those from low to high
  double low = 0;   // a tenth of the looks are below, rounded down,
  double high = 0;  // a tenth above
  // Seconds in which a cache line comes from one thread to another: the median. None with one
  // thread, or where two had no CPUs of their own.
  std::optional<double> crossing = {};
};

// A shared machine can change within seconds and show neither load nor steal. A host moves our CPUs
// about: now two of them share a cache, and a line crosses in 40 ns; now they do not, and it takes
// 200. Memory and arithmetic are as fast as ever, plain decoding hardly feels it, and every row
// more has its activations to be carried across, so runs of one program differ. This tells.
class PassWatch {
 public:
  // TooLarge as Passes::make.
  static Result<PassWatch> make(const Engine& engine);
  // Four passes: one row, kRows twice, one row; then two threads pass a line to and fro.
  void look();
  std::optional<Watched> watched() const;  // none without a look

 private:
  PassWatch(Passes passes, bool side_by_side)
      : passes_(std::move(passes)), side_by_side_(side_by_side) {}
  Passes passes_;
  bool side_by_side_;  // whether two threads can be
  std::vector<double> ratios_;
  std::vector<double> crossings_;
};

// Of looks in any order, at least one; crossings where there are threads.
Watched summarize_looks(std::vector<double> ratios, const std::vector<double>& crossings);

}  // namespace paceline::measure

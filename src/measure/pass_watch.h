// What a pass of a few rows costs beside one of one row, looked at all through a run.
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
  double mean = 0;
  double low = 0;   // a tenth of the looks are below, rounded down,
  double high = 0;  // a tenth above
};

// A shared machine can change within seconds and show neither load nor steal: here arithmetic cost
// a third more for minutes, and less again, while memory was as fast as ever. Plain decoding is as
// fast in either state and speculation is not, so runs of one program differ. This tells.
class PassWatch {
 public:
  // TooLarge as Passes::make.
  static Result<PassWatch> make(const Engine& engine);
  // Four passes: one row, kRows twice, one row.
  void look();
  std::optional<Watched> watched() const;  // none without a look

 private:
  explicit PassWatch(Passes passes) : passes_(std::move(passes)) {}
  Passes passes_;
  std::vector<double> ratios_;
};

// Of looks in any order, at least one.
Watched summarize_looks(std::vector<double> ratios);

}  // namespace paceline::measure

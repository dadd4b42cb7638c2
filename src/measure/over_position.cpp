#include "measure/over_position.h"

namespace paceline::measure {

void add_rounds(std::span<const EmittedToken> tokens, std::vector<PositionBin>& bins) {
  PositionBin* round = nullptr;
  for (size_t i = 1; i < tokens.size(); ++i) {
    const bool begins = i == 1 || tokens[i - 1].depth == 0 || tokens[i].depth == 1;
    if (begins) {
      const size_t bin = i / PositionBin::kWidth;
      if (bins.size() <= bin) bins.resize(bin + 1);
      round = &bins[bin];
      ++round->rounds;
    }
    ++round->tokens;
  }
}

}  // namespace paceline::measure

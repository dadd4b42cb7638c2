// In which order TDPBF16PS sums: the manual and the intrinsics guide disagree, so the question
// stands in one place. amx_test asks the hardware, where there is some.
#pragma once

namespace paceline {

enum class PairOrder {
  // The manual. Even and odd inputs of the tile in a chain each, from +0; the two are added to each
  // other, and the sum to what the tile held.
  TwoChains,
  // The intrinsics guide. One chain from what the tile held: even, odd, even, odd.
  OneChain,
};

inline constexpr PairOrder kPairOrder = PairOrder::TwoChains;

}  // namespace paceline

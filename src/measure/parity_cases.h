// Shapes that parity compares: those of real models, and a few that fill neither tiles nor groups.
#pragma once

#include <array>

namespace paceline::measure {

struct ProductShape {
  int n_in;
  int n_out;
};

inline constexpr std::array kParityProducts = {
    ProductShape{3, 17},       ProductShape{31, 33},       ProductShape{96, 35},
    ProductShape{64, 131},     ProductShape{577, 48},      ProductShape{576, 576},
    ProductShape{576, 192},    ProductShape{576, 1536},    ProductShape{1536, 576},
    ProductShape{576, 49152},  ProductShape{640, 256},     ProductShape{640, 2048},
    ProductShape{2048, 640},   ProductShape{640, 262144},  ProductShape{1024, 3072},
    ProductShape{3072, 1024},  ProductShape{2048, 8192},   ProductShape{3840, 2048},
    ProductShape{3840, 4096},  ProductShape{3840, 15360},  ProductShape{15360, 3840},
    ProductShape{5120, 17408}, ProductShape{17408, 5120},  ProductShape{5376, 21504},
    ProductShape{21504, 5376}, ProductShape{5376, 262144},
};

// Products that share their rows and are handed out to the threads together: queries, keys, values.
struct JointShape {
  int n_in;
  std::array<int, 3> n_out;
};
inline constexpr std::array kParityJoint = {JointShape{576, {576, 192, 192}},
                                            JointShape{640, {1024, 256, 256}},
                                            JointShape{96, {40, 17, 16}}};

inline constexpr std::array kParityWidthsOfRows = {15, 80, 576, 640, 2048, 3840, 5120, 5376};
inline constexpr std::array kParityHidden = {33, 1536, 2048, 15360, 21504};
inline constexpr std::array kParityVocabularies = {15, 1025, 49152, 151936, 262144};
inline constexpr std::array kParityHeadDims = {2, 20, 34, 64, 72, 80, 96, 128, 256};

inline constexpr int kParityRows = 32;  // the widest block

}  // namespace paceline::measure

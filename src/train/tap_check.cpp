#include "train/tap_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fmt/format.h"
#include "io/shown.h"

namespace paceline::train {
namespace {

constexpr int kRows = 16;
constexpr double kMostDistance = 0.05;  // rounding to bf16 gives some 0.003

// The median over rows of |a - b| / |b|.
double distance(const std::vector<std::vector<float>>& dumped, Mat<const float> computed) {
  std::vector<double> distances;
  for (int row = 0; row < computed.rows; ++row) {
    double off = 0;
    double size = 0;
    for (int i = 0; i < computed.cols; ++i) {
      off += std::pow(double(dumped[row][i]) - computed.row(row)[i], 2);
      size += std::pow(double(computed.row(row)[i]), 2);
    }
    distances.push_back(std::sqrt(off / std::max(size, 1e-30)));
  }
  std::ranges::sort(distances);
  return distances[distances.size() / 2];
}

}  // namespace

Result<void> check_dumped_hiddens(const Model& model, const Dump& dump, CacheType cache) {
  int at = 0;
  while (at < dump.size() && dump.stream(at).positions() < kRows) ++at;
  if (at == dump.size()) return {};
  const DumpStream stream = dump.stream(at);
  std::vector<std::vector<float>> dumped(kRows, std::vector<float>(stream.width));
  for (int row = 0; row < kRows; ++row) stream.hidden(row, dumped[row]);

  auto state = model.make_state(kRows, cache);
  if (!state) return state.error();
  auto workspace = model.make_workspace(kRows, 1);
  if (!workspace) return workspace.error();
  Block block(kRows);
  block.reset(0);
  for (const TokenId token : stream.tokens.first(kRows)) block.add(token);
  const TrunkOut out = model.forward(block, **state, LogitRows::None, **workspace);
  const Tap tap = dump.header().tap;
  const Tap other = tap == Tap::After ? Tap::Before : Tap::After;
  const double near = distance(dumped, out.at(tap));
  if (near <= kMostDistance) return {};
  return Error{ErrorCode::BadFormat,
               fmt::format("the dump's hiddens of stream {} lie {:.2f} of their size from the "
                           "trunk's {} the final norm, as its header has it, and {:.2f} from those "
                           "{} it; collect it anew",
                           quoted_name(stream.id), near, to_string(tap),
                           distance(dumped, out.at(other)), to_string(other))};
}

}  // namespace paceline::train

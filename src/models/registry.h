// Which families are known, and the way from a checkpoint on disk to a trunk that runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/numerics.h"
#include "base/result.h"
#include "io/checkpoint.h"
#include "models/model.h"

namespace paceline {

// Weights as the file has them, or dequantised (and for BF16 rounded) at load.
enum class WeightsType { Native, BF16, F32 };

struct LoadOptions {
  WeightsType weights = WeightsType::Native;
  int threads = 1;
  bool wide = false;                      // the negative control of kernels/kernels.h
  std::optional<Numerics> numerics = {};  // none: amx where this machine has AMX, else portable
  // Called while weights are repacked, with the share done so far, 0 to 1.
  std::function<void(std::string_view what, double share)> progress = {};
};

// Unsupported, with the list of known families, for a family that is not known; BadFormat for
// missing or misshapen tensors, each named. The checkpoint may be closed afterwards.
Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint, const LoadOptions& options);

}  // namespace paceline

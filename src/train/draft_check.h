// Whether a head drafts for the trainer what it drafted for the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "io/dump.h"
#include "models/draft_head.h"
#include "models/model.h"

namespace paceline::train {

// Drafts that a dump's rounds have of the head with this digest, `head_sha256`, made again: through
// the loader and the drafter that serving uses, over the dumped hiddens, behind the tokens that
// stood before each in its round. How many were compared, of the first `most` or so; 0 where the
// dump has none of this head. BadFormat names the first that differs by stream, row and depth.
// Interrupted by `stop`.
Result<int64_t> check_recorded_drafts(const Model& model, const HeadTensors& head,
                                      std::string_view head_sha256, const Dump& dump,
                                      CacheType cache, int64_t most,
                                      const std::function<bool()>& stop = {});

}  // namespace paceline::train

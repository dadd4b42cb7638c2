// Whether a dump's hiddens are what its header says.
#pragma once

#include "base/result.h"
#include "io/dump.h"
#include "models/model.h"

namespace paceline::train {

// Recomputes the first 16 rows of the first stream that is long enough and compares them with the
// dump's. Those of another tap, layer or text lie far away; another order of summing, or another
// type of cache, does not matter. BadFormat names both distances: of the tap that the header names
// and of the other one.
Result<void> check_dumped_hiddens(const Model& model, const Dump& dump, CacheType cache);

}  // namespace paceline::train

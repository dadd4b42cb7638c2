// A text that is given, read as if it had been written: its rows, and where the trunk would have
// gone on like it.
#pragma once

#include <memory>
#include <span>

#include "engine/engine.h"

namespace paceline::measure {

class GivenTextReader {
 public:
  // TooLarge when there is no memory for passes. The engine must outlive it.
  static Result<GivenTextReader> make(const Engine& engine);

  // Reads all tokens but the last, at least two in all and at most the engine's context, and hands
  // each row to the sink, as a generation would whose prompt is the first token. TooLarge for a
  // text that does not fit.
  Result<void> read(std::span<const TokenId> tokens, RowSink& sink);

 private:
  explicit GivenTextReader(const Engine& engine) : engine_(&engine), block_(kBlockRows) {}
  static constexpr int kBlockRows = 128;

  const Engine* engine_;
  std::unique_ptr<Workspace> workspace_;
  Block block_;
};

}  // namespace paceline::measure

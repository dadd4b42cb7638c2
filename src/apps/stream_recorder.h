// One generation, recorded as a stream of a dump.
#pragma once

#include <string>

#include "engine/engine.h"
#include "io/dump_writer.h"

namespace paceline::apps {

class StreamRecorder final : public RowTap {
 public:
  // prompt: that of the request which names this as its tap.
  StreamRecorder(std::string id, std::string category, std::span<const TokenId> prompt,
                 DumpType type, int width);

  void rows(std::span<const TokenId> next, Mat<const float> hidden) override;
  void chosen(TokenId id, bool own_top1) override;
  void drafted(std::span<const Draft> drafts, int n_accepted) override;

  const NewStream& stream() const { return stream_; }
  // What is known when the generation is done; budget: the tokens that it was allowed.
  NewStream finish(FinishReason reason, int budget);

 private:
  NewStream stream_;
};

}  // namespace paceline::apps

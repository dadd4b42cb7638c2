// One generation, recorded as a stream of a dump.
#pragma once

#include <string>

#include "engine/engine.h"
#include "io/dump_writer.h"

namespace paceline::apps {

// Which hiddens are recorded, and how they are rounded.
struct RowKind {
  Tap tap = Tap::After;
  TapType type = TapType::BF16;
  int width = 0;
  std::string head_sha256 = {};  // of the head that may draft
};

class StreamRecorder final : public RowSink {
 public:
  // prompt: that of the request which names this as its sink.
  StreamRecorder(std::string id, std::string category, std::span<const TokenId> prompt,
                 const RowKind& kind);

  Tap tap() const override { return tap_; }
  void rows(std::span<const TokenId> next, Mat<const float> hidden) override;
  void chosen(TokenId id, bool own_top1) override;
  void drafted(std::span<const Draft> drafts, int n_accepted) override;

  const NewStream& stream() const { return stream_; }
  // What is known when the generation is done; budget: the tokens that it was allowed.
  NewStream finish(FinishReason reason, int budget);
  // The same of a text that was given whole.
  NewStream finish_text();

 private:
  Tap tap_;
  std::string head_sha256_;
  NewStream stream_;
};

}  // namespace paceline::apps

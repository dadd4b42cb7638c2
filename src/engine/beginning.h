// The beginning that several prompts have in common.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/mat.h"
#include "base/result.h"
#include "base/tap.h"
#include "base/types.h"
#include "models/model.h"

namespace paceline {

// The state behind some tokens, and their hiddens for whoever records them. By the row rule each
// byte is the one that a prompt with this beginning would have computed.
class Beginning {
 public:
  // workspace: for passes of kPrefillRows rows at least.
  static Result<std::shared_ptr<const Beginning>> read(const Model& model, CacheType cache,
                                                       Workspace& workspace,
                                                       std::span<const TokenId> ids);

  std::span<const TokenId> ids() const { return ids_; }
  const SequenceState& state() const { return *state_; }
  Mat<const float> hiddens(Tap tap) const;  // (ids, dim)

 private:
  std::vector<TokenId> ids_;
  std::unique_ptr<SequenceState> state_;
  int dim_ = 0;
  std::vector<float> after_;   // the final norm
  std::vector<float> before_;  // empty of a trunk without heads
};

}  // namespace paceline

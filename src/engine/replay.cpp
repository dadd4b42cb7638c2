// A recorded text's rounds with the drafter of a live run.
#include <algorithm>

#include "engine/engine_state.h"
#include "engine/request.h"

namespace paceline {

Result<RoundCounts> Engine::replay(const RecordedText& text, const Request& request) const {
  const DrafterKind kind = state_->drafter_for(request);
  if (kind == DrafterKind::Mtp && state_->head == nullptr)
    return Error{ErrorCode::BadUsage, state_->no_head};
  auto made =
      state_->make_drafter(kind, request, Gate::replaying(), nullptr, text.n_prompt + text.budget);
  if (!made) return made.error();
  DepthPolicy policy;
  Depth depth = depth_for(request, kind);
  if (request.depth == kAutoDepth && kind != DrafterKind::None) {
    depth.policy = &policy;
    depth.costs = &costs();
  }
  return replay_stream(text, *made->drafter, depth);
}

}  // namespace paceline

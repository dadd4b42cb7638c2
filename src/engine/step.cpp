// Steps of several generations in shared passes.
#include <chrono>

#include "base/check.h"
#include "engine/generation_state.h"

namespace paceline {

// Parts go into passes in the order of the generations, each in one piece.
void Generation::step_together(std::span<Generation* const> generations) {
  if (generations.empty()) return;
  Engine::State& engine = generations[0]->state_->engine;
  std::vector<PassPart>& parts = engine.parts;
  std::vector<Generation::State*>& members = engine.members;
  int rows = 0;
  int logits = 0;
  const auto run_pass = [&] {
    if (parts.empty()) return;
    const auto start = std::chrono::steady_clock::now();
    engine.model->forward(parts, *engine.workspace);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    // Of the rounds of one sequence, whose policy goes by these costs.
    if (engine.costs && parts.size() == 1 && members[0]->prefilled)
      engine.costs->observe(rows, seconds.count());
    for (size_t i = 0; i < parts.size(); ++i) members[i]->close(parts[i].out, seconds.count());
    parts.clear();
    members.clear();
    rows = logits = 0;
  };
  for (Generation* generation : generations) {
    State& state = *generation->state_;
    check(&state.engine == &engine, "generations that step together are of one engine");
    state.clear_pieces();
    if (state.done) continue;
    const PassPart part = state.open();
    if (rows + part.block->rows() > engine.workspace->max_rows() ||
        logits + part.n_logits() > engine.workspace->max_logit_rows()) {
      run_pass();
    }
    rows += part.block->rows();
    logits += part.n_logits();
    parts.push_back(part);
    members.push_back(&state);
  }
  run_pass();
}

}  // namespace paceline

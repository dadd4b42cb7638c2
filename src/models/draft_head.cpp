#include "models/draft_head.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace paceline {

HeadState::HeadState(std::vector<std::unique_ptr<SequenceState>> modules) {
  check(!modules.empty(), "a head has a module");
  for (auto& state : modules) {
    state->reserve_rows(kMostOpenRows);
    Block open(kMostOpenRows);
    open.reset(state->length());
    parts_.push_back({std::move(state), std::move(open)});
  }
}

int64_t HeadState::bytes() const {
  int64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.state->bytes();
  return bytes;
}

const Block& HeadState::append(int module, std::span<const TokenId> tokens,
                               std::span<const int> parents) {
  check(parents.empty() || parents.size() == tokens.size(), "each row has a parent");
  Block& open = parts_[module].open;
  for (size_t i = 0; i < tokens.size(); ++i)
    open.add(tokens[i], parents.empty() ? open.rows() - 1 : parents[i]);
  return open;
}

void HeadState::commit(int module, int n) {
  auto& [state, open] = parts_[module];
  if (open.rows() > 0) state->commit(n);
  open.reset(state->length());
}

Result<std::unique_ptr<HeadState>> HeadState::fork(int capacity, int length) const {
  std::vector<std::unique_ptr<SequenceState>> forks;
  for (const Part& part : parts_) {
    auto fork = part.state->fork(capacity, length);
    if (!fork) return fork.error();
    forks.push_back(std::move(*fork));
  }
  for (const auto& fork : forks) {
    check(fork->length() == forks.front()->length(), "modules share the same number of rows");
  }
  return std::make_unique<HeadState>(std::move(forks));
}

}  // namespace paceline

// How often drafts of one kind stood, lately.
#pragma once

#include <array>

namespace paceline {

inline constexpr int kMostDrafts = 16;  // drafts a round at most

// A running share over all depths, and one for each depth that leans on it until it has seen enough
// of its own. Old trials fade, so the shares follow the text.
class Acceptance {
 public:
  // prior: the share that is assumed before there are trials; it weighs as much as so many trials.
  // With the default a few rounds overrule it.
  explicit Acceptance(double prior = 0.5, double trials = 8);

  // The chance that a draft at `depth` (from 1) stands, given that those before it stand.
  double chance(int depth) const;
  // A draft at `depth`, those before it having stood, stood (1), fell (0), or was not put to the
  // test and would have stood with that chance.
  void add(int depth, double stood);

 private:
  struct Share {
    double stood = 0;
    double tried = 0;
  };
  static void add(Share& share, double stood);

  Share all_;
  std::array<Share, kMostDrafts> by_depth_ = {};
};

}  // namespace paceline

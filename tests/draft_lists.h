// Drafts from plain tokens, and what became of them.
#pragma once

#include <numeric>
#include <span>
#include <vector>

#include "spec/drafter.h"
#include "spec/policy.h"

namespace paceline {

inline std::vector<Draft> chain_of(std::span<const TokenId> tokens) {
  std::vector<Draft> drafts;
  for (const TokenId token : tokens) drafts.push_back({.token = token});
  return drafts;
}
inline std::vector<Draft> chain_of(std::initializer_list<TokenId> tokens) {
  return chain_of(std::span(tokens.begin(), tokens.size()));
}

// A token and the index of the draft that it continues.
struct Node {
  TokenId token;
  int parent;
};
inline std::vector<Draft> tree_of(std::span<const Node> nodes) {
  std::vector<Draft> drafts;
  for (const Node& node : nodes)
    drafts.push_back(
        {.token = node.token, .back = back_to(node.parent, static_cast<int>(drafts.size()))});
  return drafts;
}
inline std::vector<Draft> tree_of(std::initializer_list<Node> nodes) {
  return tree_of(std::span(nodes.begin(), nodes.size()));
}

// The first n_accepted drafts of a chain stood.
inline void record_chain(DepthPolicy& policy, std::span<const Draft> verified, int n_accepted) {
  std::vector<uint8_t> standing(n_accepted);
  std::iota(standing.begin(), standing.end(), uint8_t{0});
  policy.record(verified, standing, kMostDrafts);
}

}  // namespace paceline

// The flags of speculation: which drafter, how deep, and which arms are run side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "engine/engine.h"

namespace paceline::apps {

struct SpecFlags {
  int drafter = 0;                    // index into auto, none, lookup, mtp, union, scripted
  std::vector<DraftShape> arms;       // in order
  std::optional<std::string> drafts;  // file of a scripted drafter
  std::optional<std::string> head;    // file of a draft head
  std::optional<std::string> store;   // file of a store of n-grams
  bool learn = false;                 // answers go into it
  bool allow_inexact = false;

  void add(Flags& flags, const std::string& depths_help, std::vector<DraftShape> default_arms);
  // What only all flags together can tell. learns: whether the command can.
  Result<void> check(bool learns = false);
  DrafterKind kind() const;
  // Whether some arm asks for drafts.
  bool drafts_at_all() const;
  // The files that are named, all of which are read.
  std::vector<std::string> files() const;
  // Which draft head is to be loaded.
  HeadChoice head_choice() const;
  StoreChoice store_choice() const;
  const char* drafter_name() const;
  // The token ids that the scripted drafter drafts, for each of n prompts; empty without one.
  Result<std::vector<std::vector<TokenId>>> read_scripts(size_t n_prompts) const;

 private:
  std::optional<DraftShape> depth_;
  int tree_ = kAutoTree;  // of arms that do not say
  std::vector<DraftShape> default_arms_;
};

// "auto", "4", "8:15"
std::string shape_name(const DraftShape& shape);
// One value for both: the depth, 4 or "auto", or where a tree is asked for the name, "8:15".
Json shape_label(const DraftShape& shape);
// The fields "depth" and "tree": numbers, or "auto".
Json depth_json(const DraftShape& shape);
Json tree_json(const DraftShape& shape);

}  // namespace paceline::apps

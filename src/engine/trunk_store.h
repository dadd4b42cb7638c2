// The store of n-grams that goes with a trunk: found, and grown where the user wants it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "spec/store_builder.h"

namespace paceline {

struct TrunkStore {
  std::shared_ptr<const NgramStore> store;  // null: there is none
  std::filesystem::path file;               // of the store
  std::optional<StoreBuilder> learner;      // where answers are learnt
  std::filesystem::path learner_file;       // and where they go
};

// $XDG_DATA_HOME/paceline/stores/SHA-256.plstore, else under ~/.local/share; empty where there is
// no home.
std::filesystem::path learnt_store_file(const std::string& trunk_sha256);

// asked: the file to use, or none named. Then it is the store that was learnt on this machine, else
// the first *.plstore, by name, of the folders where heads lie (engine/head_search.h) that was made
// from the checkpoint's answers. learn: into the file that was asked for, which need not be there
// yet, or into that of this machine. A file asked for, or to learn into, that does not fit or
// cannot be written is an error; another one that was found and does not fit is left aside, and
// `warnings` says so.
Result<TrunkStore> open_trunk_store(const Checkpoint& checkpoint, int vocab_size,
                                    const std::filesystem::path& asked, bool learn,
                                    std::vector<std::string>& warnings);

}  // namespace paceline

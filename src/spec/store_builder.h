// Makes a store of n-grams, and makes one grow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/store.h"

namespace paceline {

struct StoreLimits {
  int64_t max_bytes = 4'000'000;  // of the file; what is rarest and was seen longest ago goes first
  int successors = 4;             // tokens kept behind one context; the others are summed up
};

// Counts what follows each context of 1 to NgramStore::kOrders tokens inside one answer. Its memory
// grows with what is added, some 60 bytes a token; the file does not.
class StoreBuilder {
 public:
  // trunk_sha256: of the trunk that writes, "" where it is not made from files.
  StoreBuilder(std::string trunk_sha256, int vocab_size, StoreLimits limits = {});

  // One answer of the trunk, without its prompt.
  void add(std::span<const TokenId> answer);
  int64_t n_tokens() const { return n_tokens_; }  // that were added here

  // Writes what was added as a store of its own, in place of what stands there.
  Result<void> save(const std::filesystem::path& path);
  // Adds it to the store that stands there, or where none does to `start`, if there is one. Writers
  // of one file wait for each other, so that nothing is lost, and readers see one store or the
  // other whole. BadFormat where what stands there is no store, or another trunk's; it is left as
  // it is. Afterwards nothing is added.
  Result<void> save_into(const std::filesystem::path& path, const NgramStore* start = nullptr);

 private:
  struct Seen {
    uint64_t what = 0;  // context key and token: key << 24 | token
    uint32_t count = 0;
    uint64_t when = 0;  // the clock when it was seen last
  };
  struct Context;
  static void merge(std::vector<Seen>& all);
  std::vector<Seen> entries_with(const NgramStore* older);
  Result<void> write(const std::filesystem::path& path, const NgramStore* older);

  std::string trunk_sha256_;
  int vocab_size_;
  StoreLimits limits_;
  int64_t n_tokens_ = 0;
  size_t n_merged_ = 0;
  std::vector<Seen> seen_;
};

}  // namespace paceline

// A store of n-grams of what a trunk has written: which token followed a context, and how often.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/types.h"

namespace paceline {

// A token that followed a context.
struct StoreGuess {
  TokenId token = -1;
  int order = 0;      // tokens of the context
  int count = 0;      // times that it followed, lately
  int64_t total = 0;  // times that anything did
};

// A file, mapped and never written: growing makes another one in its place (spec/store_builder.h).
// Everything that its bytes claim is checked when it is opened. Const, so that threads may share
// it.
class NgramStore {
 public:
  static constexpr int kOrders = 3;

  // BadFormat in one sentence for what is damaged, cut or no store.
  static Result<std::shared_ptr<const NgramStore>> open(const std::filesystem::path& path);
  // The same over bytes, 8-aligned, that outlive it; name: for the sentence.
  static Result<NgramStore> read(std::span<const std::byte> bytes, const std::string& name);

  // Behind the end of `text`, of which the last kOrders tokens are looked at: the tokens that
  // followed the longest context that is known, the most frequent first, then those that followed
  // shorter ones, each once. Returns how many, down to none. Allocates nothing.
  int guesses(std::span<const TokenId> text, std::span<StoreGuess> out) const;

  const std::string& trunk_sha256() const { return trunk_sha256_; }  // "": of no file
  int vocab_size() const { return vocab_size_; }
  int64_t n_tokens() const { return n_tokens_; }  // that were ever added
  int64_t n_entries() const { return static_cast<int64_t>(entries_.size()); }
  int64_t bytes() const { return bytes_; }
  const std::string& sha256() const { return sha256_; }  // of the file

  // For the builder: the entries of one bucket.
  std::span<const uint64_t> bucket(int index) const;

 private:
  NgramStore() = default;

  MappedFile file_;  // empty where the bytes are another's
  int vocab_size_ = 0;
  int64_t n_tokens_ = 0;
  int64_t bytes_ = 0;
  std::string trunk_sha256_;
  std::string sha256_;
  std::span<const uint32_t> first_;
  std::span<const uint64_t> entries_;
};

}  // namespace paceline

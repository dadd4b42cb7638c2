// Any bytes as a store of n-grams: an error, or a store that can be asked anything.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/sha256.h"
#include "spec/store.h"
#include "spec/store_format.h"

namespace {

using namespace paceline;
namespace format = store_format;

void fuzz_file(std::span<const uint64_t> words, size_t size) {
  const auto got = NgramStore::read(std::as_bytes(words).first(size), "fuzz");
  if (!got) {
    check(!got.error().message.empty(), "an error without a sentence");
    return;
  }
  std::array<TokenId, 3> text = {1, 2, 3};
  for (int step = 0; step < 50; ++step) {
    std::array<StoreGuess, 4> guesses;
    const int n = got->guesses(text, guesses);
    for (const StoreGuess& guess : std::span(guesses).first(n))
      check(guess.token >= 0 && guess.token < got->vocab_size() && guess.count <= guess.total,
            "a guess is sound");
    text = {text[1], text[2], n == 0 ? step : guesses[step % n].token};
  }
  int64_t entries = 0;
  for (int b = 0; b < format::kBuckets; ++b) entries += std::ssize(got->bucket(b));
  check(entries == got->n_entries(), "buckets hold every entry once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint64_t> words((size + 7) / 8);
  if (size > 0) std::memcpy(words.data(), data, size);
  fuzz_file(words, size);

  // Length, index and checksum are hard to guess. So the input is taken as what begins a header,
  // then pairs of a bucket (16 bits) and an entry, and the rest is made to fit, but for the
  // buckets' order, which stays as it came.
  format::Header header;
  const size_t at = std::min(size, size_t{20});
  if (at > 0) std::memcpy(reinterpret_cast<char*>(&header) + 8, data, std::min(at, size_t{4}));
  const size_t n = (size - at) / 10;
  header.n_entries = static_cast<uint32_t>(n);
  std::vector<uint32_t> first(format::kBuckets + 2);
  std::vector<uint64_t> entries(n);
  uint16_t before = 0;
  for (size_t i = 0; i < n; ++i) {
    uint16_t bucket = 0;
    std::memcpy(&bucket, data + at + i * 10, 2);
    std::memcpy(&entries[i], data + at + i * 10 + 2, 8);
    before = std::max(before, bucket);
    ++first[before + 1];
  }
  for (int b = 0; b < format::kBuckets; ++b) first[b + 1] += first[b];
  first[format::kBuckets + 1] = 0;
  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  file.append(reinterpret_cast<const char*>(first.data()), first.size() * 4);
  file.append(reinterpret_cast<const char*>(entries.data()), n * 8);
  const std::string digest = sha256(std::as_bytes(std::span(file)));
  for (size_t i = 0; i < format::kDigestBytes; ++i)
    file += static_cast<char>(std::stoi(digest.substr(2 * i, 2), nullptr, 16));
  words.assign((file.size() + 7) / 8, 0);
  std::memcpy(words.data(), file.data(), file.size());
  fuzz_file(words, file.size());
  return 0;
}

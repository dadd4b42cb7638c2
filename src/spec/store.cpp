#include "spec/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/sha256.h"
#include "io/shown.h"
#include "spec/store_format.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

using namespace store_format;

static_assert(NgramStore::kOrders == store_format::kOrders);

// So that clocks and sums have room.
constexpr uint64_t kMostTokens = uint64_t{1} << 60;

bool is_hexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// What is wrong with the entries; null: nothing.
const char* fault_of(std::span<const uint32_t> first, std::span<const uint64_t> entries,
                     uint32_t vocab_size) {
  if (first[0] != 0 || first[kBuckets] != entries.size()) return "its index does not fit";
  for (int b = 0; b < kBuckets; ++b) {
    if (first[b] > first[b + 1] || first[b + 1] > entries.size()) return "its index does not fit";
    uint32_t tag_before = 0;
    for (uint32_t i = first[b]; i < first[b + 1]; ++i) {
      const Entry entry = unpack(entries[i]);
      if (entry.tag < tag_before) return "its entries are out of order";
      if (entry.count == 0) return "an entry counts nothing";
      if (entry.token >= vocab_size && entry.token != kOthers)
        return "an entry holds a token that the vocabulary lacks";
      tag_before = entry.tag;
    }
  }
  return nullptr;
}

}  // namespace

Result<std::shared_ptr<const NgramStore>> NgramStore::open(const fs::path& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto store = read(file->bytes(), shown_path(path));
  if (!store) return store.error();
  store->file_ = std::move(*file);
  return std::shared_ptr<const NgramStore>(std::make_shared<NgramStore>(std::move(*store)));
}

Result<NgramStore> NgramStore::read(std::span<const std::byte> bytes, const std::string& name) {
  const auto bad = [&](std::string_view why) {
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: not a whole store of n-grams: {}", name, why)};
  };
  const auto size = static_cast<int64_t>(bytes.size());
  if (size < kFixedBytes)
    return bad(fmt::format("it has {} bytes, and the smallest has {}", size, kFixedBytes));
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return bad("it does not begin with PLSTORE1");
  if (header.n_tokens > kMostTokens) return bad("it counts more tokens than anybody wrote");
  if (header.n_entries != (size - kFixedBytes) / 8 || (size - kFixedBytes) % 8 != 0) {
    return bad(fmt::format("it has {} bytes, and {} entries take {}", size, header.n_entries,
                           kFixedBytes + int64_t{header.n_entries} * 8));
  }
  const auto body = bytes.first(bytes.size() - kDigestBytes);
  if (paceline::sha256(body) != hexadecimal(bytes.last(kDigestBytes)))
    return bad("its checksum does not fit; it is damaged");
  const auto* text = header.trunk_sha256.data();
  NgramStore store;
  store.trunk_sha256_ = std::string(text, strnlen(text, header.trunk_sha256.size()));
  const size_t n_hex = store.trunk_sha256_.size();
  if ((n_hex != 0 && n_hex != 64) || !is_hexadecimal(store.trunk_sha256_))
    return bad("the SHA-256 of its trunk is none");
  if (header.vocab_size == 0 || header.vocab_size > kOthers)
    return bad(fmt::format("a vocabulary of {}", header.vocab_size));
  check(reinterpret_cast<uintptr_t>(bytes.data()) % 8 == 0, "the bytes of a store are aligned");
  store.first_ = {reinterpret_cast<const uint32_t*>(bytes.data() + sizeof(Header)), kBuckets + 1};
  store.entries_ = {reinterpret_cast<const uint64_t*>(bytes.data() + kEntriesAt), header.n_entries};
  if (const char* fault = fault_of(store.first_, store.entries_, header.vocab_size))
    return bad(fault);
  store.vocab_size_ = static_cast<int>(header.vocab_size);
  store.n_tokens_ = static_cast<int64_t>(header.n_tokens);
  store.bytes_ = size;
  store.sha256_ = paceline::sha256(bytes);
  return store;
}

std::span<const uint64_t> NgramStore::bucket(int index) const {
  return entries_.subspan(first_[index], first_[index + 1] - first_[index]);
}

int NgramStore::guesses(std::span<const TokenId> text, std::span<StoreGuess> out) const {
  std::array<uint64_t, store_format::kOrders> keys = {};
  size_t n = 0;
  for (int order = context_keys(text, keys); order >= 1 && n < out.size(); --order) {
    const uint32_t tag = tag_of(keys[order - 1]);
    const size_t first = n;
    int64_t total = 0;
    for (const uint64_t bits : bucket(static_cast<int>(bucket_of(keys[order - 1])))) {
      const Entry entry = unpack(bits);
      if (entry.tag > tag) break;
      if (entry.tag < tag) continue;
      total += static_cast<int>(entry.count);
      if (entry.token == kOthers || n == out.size()) continue;
      const auto token = static_cast<TokenId>(entry.token);
      const auto known = out.first(n);
      if (std::ranges::find(known, token, &StoreGuess::token) != known.end()) continue;
      out[n++] = {.token = token, .order = order, .count = static_cast<int>(entry.count)};
    }
    for (StoreGuess& guess : out.subspan(first, n - first)) guess.total = total;
  }
  return static_cast<int>(n);
}

}  // namespace paceline

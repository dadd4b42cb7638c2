#include "spec/store.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "base/sha256.h"
#include "io/test_files.h"
#include "spec/store_builder.h"
#include "spec/store_format.h"

namespace paceline {
namespace {

using Tokens = std::vector<TokenId>;

const std::string kTrunk(64, 'a');

std::shared_ptr<const NgramStore> opened(const std::filesystem::path& path) {
  auto store = NgramStore::open(path);
  if (!store) {
    ADD_FAILURE() << store.error().message;
    return nullptr;
  }
  return *store;
}

std::shared_ptr<const NgramStore> store_of(const TemporaryFolder& folder,
                                           const std::vector<Tokens>& answers,
                                           StoreLimits limits = {}) {
  StoreBuilder builder(kTrunk, 300, limits);
  for (const Tokens& answer : answers) builder.add(answer);
  const auto saved = builder.save(folder.path() / "s.plstore");
  EXPECT_TRUE(saved) << saved.error().message;
  return opened(folder.path() / "s.plstore");
}

StoreGuess next_of(const NgramStore& store, const Tokens& text) {
  StoreGuess guess;
  store.guesses(text, {&guess, 1});
  return guess;
}

TEST(NgramStore, TheLongestKnownContextSpeaks) {
  const TemporaryFolder folder;
  const auto store = store_of(folder, {{1, 2, 3, 4}, {9, 2, 3, 5}, {7, 2, 3, 5}, {6, 8}});
  ASSERT_NE(store, nullptr);
  // Behind 2 3 came 5 twice and 4 once; behind 1 2 3 only 4.
  const StoreGuess two = next_of(*store, Tokens{8, 2, 3});
  EXPECT_EQ(two.token, 5);
  EXPECT_EQ(two.order, 2);
  EXPECT_EQ(two.count, 2);
  EXPECT_EQ(two.total, 3);
  const StoreGuess three = next_of(*store, Tokens{0, 1, 2, 3});
  EXPECT_EQ(three.token, 4);
  EXPECT_EQ(three.order, 3);
  EXPECT_EQ(next_of(*store, Tokens{5, 6}).token, 8);
  EXPECT_EQ(next_of(*store, Tokens{4}).token, -1) << "4 ended an answer";
  EXPECT_EQ(next_of(*store, {}).token, -1);
  EXPECT_EQ(store->n_tokens(), 14);
  EXPECT_EQ(store->vocab_size(), 300);
  EXPECT_EQ(store->trunk_sha256(), kTrunk);
  EXPECT_EQ(store->sha256(), sha256(bytes_of(read_whole(folder.path() / "s.plstore"))));
}

TEST(NgramStore, CountsWhatAPlainCountCounts) {
  std::mt19937 random(1);
  const TemporaryFolder folder;
  std::vector<Tokens> answers(40);
  for (Tokens& answer : answers) {
    answer.resize(random() % 60);
    for (TokenId& token : answer) token = static_cast<TokenId>(random() % 7);
  }
  const auto store = store_of(folder, answers, {.successors = 300});
  ASSERT_NE(store, nullptr);
  std::map<Tokens, std::map<TokenId, int>> counts;  // context -> token -> times
  for (const Tokens& answer : answers) {
    for (int at = 0; at < static_cast<int>(answer.size()); ++at)
      for (int n = 1; n <= std::min(at, NgramStore::kOrders); ++n)
        ++counts[Tokens(answer.begin() + at - n, answer.begin() + at)][answer[at]];
  }
  for (int run = 0; run < 2000; ++run) {
    Tokens text(random() % 6);
    for (TokenId& token : text) token = static_cast<TokenId>(random() % 8);
    const StoreGuess guess = next_of(*store, text);
    int order = std::min<int>(static_cast<int>(text.size()), NgramStore::kOrders);
    while (order > 0 && !counts.contains(Tokens(text.end() - order, text.end()))) --order;
    EXPECT_EQ(guess.order, order);
    if (order == 0) continue;
    const auto& behind = counts[Tokens(text.end() - order, text.end())];
    int best = 0;
    int total = 0;
    for (const auto& [token, count] : behind) {
      best = std::max(best, count);
      total += count;
    }
    EXPECT_EQ(guess.count, best);
    EXPECT_EQ(guess.total, total);
    EXPECT_EQ(behind.at(guess.token), best);
  }
}

TEST(NgramStore, OfEquallyFrequentTokensTheLatestSpeaks) {
  const TemporaryFolder folder;
  EXPECT_EQ(next_of(*store_of(folder, {{1, 5}, {1, 4}, {1, 6}}), Tokens{1}).token, 6);
}

TEST(NgramStore, KeepsFewTokensBehindAContextAndTheSumOfTheOthers) {
  const TemporaryFolder folder;
  std::vector<Tokens> answers = {{1, 50}, {1, 50}, {1, 50}, {1, 60}, {1, 60}};
  for (TokenId token = 100; token < 120; ++token) answers.push_back({1, token});
  const auto store = store_of(folder, answers, {.successors = 2});
  EXPECT_EQ(store->n_entries(), 3);  // 50, 60, and the twenty others
  const StoreGuess guess = next_of(*store, Tokens{1});
  EXPECT_EQ(guess.token, 50);
  EXPECT_EQ(guess.count, 3);
  EXPECT_EQ(guess.total, 25);
}

TEST(NgramStore, CountsBeyondTheirRoomAreHalvedTogether) {
  const TemporaryFolder folder;
  Tokens answer;
  for (int i = 0; i < 100'000; ++i) {
    answer.push_back(1);
    answer.push_back(i % 4 == 0 ? 3 : 2);
  }
  const StoreGuess guess = next_of(*store_of(folder, {answer}), Tokens{200, 1});
  EXPECT_EQ(guess.token, 2);
  EXPECT_EQ(guess.count, 37'500);
  EXPECT_EQ(guess.total, 50'000);
}

TEST(NgramStore, StaysWithinItsSizeAndGivesUpTheRarestAndOldest) {
  const TemporaryFolder folder;
  constexpr int64_t kRoom = 4000;  // entries
  StoreBuilder builder(kTrunk, 10'000, {.max_bytes = store_format::kFixedBytes + kRoom * 8});
  const auto path = folder.path() / "s.plstore";
  // Ten times over, and so frequent; then contexts that come once, 20,000 tokens of them and more.
  for (int i = 0; i < 10; ++i)
    for (TokenId first = 0; first < 300; ++first) builder.add(Tokens{first, first + 1});
  builder.add(Tokens{1000, 1001});  // once, and long ago
  for (int i = 0; i < 20'000; ++i) builder.add(Tokens{2000 + i % 7000, 9000 - i / 7000 * 100});
  builder.add(Tokens{1100, 1101});  // once, just now
  ASSERT_TRUE(builder.save(path));
  const auto store = opened(path);
  EXPECT_EQ(store->n_entries(), kRoom);
  EXPECT_EQ(store->bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
  EXPECT_LE(store->bytes(), store_format::kFixedBytes + kRoom * 8);
  for (TokenId first = 0; first < 300; ++first)
    EXPECT_EQ(next_of(*store, Tokens{first}).token, first + 1);
  EXPECT_EQ(next_of(*store, Tokens{1000}).token, -1);
}

TEST(NgramStore, AgeIsCountedInTokensOverAllThatIsEverAdded) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "s.plstore";
  constexpr int64_t kRoom = 500;
  const StoreLimits limits = {.max_bytes = store_format::kFixedBytes + kRoom * 8};
  StoreBuilder builder(kTrunk, 10'000, limits);
  for (TokenId first = 0; first < 400; ++first) builder.add(Tokens{first, 5});
  ASSERT_TRUE(builder.save_into(path));
  const Tokens same(70'000, 9'000);  // one context, four steps of age
  builder.add(same);
  ASSERT_TRUE(builder.save_into(path));
  for (TokenId first = 1000; first < 1400; ++first) builder.add(Tokens{first, 6});
  ASSERT_TRUE(builder.save_into(path));
  const auto store = opened(path);
  EXPECT_EQ(store->n_entries(), kRoom);
  for (TokenId first = 1000; first < 1400; ++first)
    EXPECT_EQ(next_of(*store, Tokens{first}).token, 6) << "all of the new ones stay";
}

TEST(NgramStore, GrowsAsIfAllHadBeenAddedAtOnce) {
  std::mt19937 random(2);
  const TemporaryFolder folder;
  std::vector<Tokens> answers(30);
  for (Tokens& answer : answers) {
    answer.resize(50);
    for (TokenId& token : answer) token = static_cast<TokenId>(random() % 20);
  }
  const StoreLimits limits = {.successors = 300};
  const auto whole = store_of(folder, answers, limits);
  const auto grown = folder.path() / "grown.plstore";
  for (size_t i = 0; i < answers.size(); i += 10) {
    StoreBuilder builder(kTrunk, 300, limits);
    for (size_t j = i; j < i + 10; ++j) builder.add(answers[j]);
    ASSERT_TRUE(builder.save_into(grown));
    EXPECT_EQ(builder.n_tokens(), 0);
  }
  const auto store = opened(grown);
  EXPECT_EQ(store->n_tokens(), whole->n_tokens());
  EXPECT_EQ(store->n_entries(), whole->n_entries());
  for (int run = 0; run < 1000; ++run) {
    Tokens text(4);
    for (TokenId& token : text) token = static_cast<TokenId>(random() % 20);
    EXPECT_EQ(next_of(*store, text).count, next_of(*whole, text).count);
    EXPECT_EQ(next_of(*store, text).total, next_of(*whole, text).total);
  }
}

TEST(NgramStore, LearnersAtTheSameTimeLoseNothing) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "s.plstore";
  std::vector<std::thread> learners;
  for (TokenId own = 0; own < 4; ++own) {
    learners.emplace_back([&, own] {
      for (int i = 0; i < 10; ++i) {
        StoreBuilder builder(kTrunk, 300);
        builder.add(Tokens{100, own, 100, own});
        EXPECT_TRUE(builder.save_into(path));
        EXPECT_TRUE(NgramStore::open(path)) << "a reader sees a whole store at any time";
      }
    });
  }
  for (std::thread& learner : learners) learner.join();
  const auto store = opened(path);
  EXPECT_EQ(store->n_tokens(), 4 * 10 * 4);
  EXPECT_EQ(next_of(*store, Tokens{100}).total, 4 * 10 * 2);
}

TEST(NgramStore, AStoreThatIsOpenStaysAsItIsWhileAnotherTakesItsPlace) {
  const TemporaryFolder folder;
  const auto before = store_of(folder, {{1, 2}});
  const auto after = store_of(folder, {{1, 3}});
  EXPECT_EQ(next_of(*before, Tokens{1}).token, 2);
  EXPECT_EQ(next_of(*after, Tokens{1}).token, 3);
}

// --- files that are no stores --------------------------------------------------------------------

// Bytes where the store's own alignment holds.
struct Bytes {
  explicit Bytes(std::string_view text) : words((text.size() + 7) / 8), size(text.size()) {
    std::memcpy(words.data(), text.data(), text.size());
  }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(words)).first(size); }
  std::vector<uint64_t> words;
  size_t size;
};

Result<NgramStore> read(const std::string& text) {
  const Bytes bytes(text);
  return NgramStore::read(bytes.span(), "it");
}

std::string whole_file() {
  const TemporaryFolder folder;
  store_of(folder, {{1, 2, 3, 4}, {9, 2, 3, 5}, {7, 2, 3, 5}});
  return read_whole(folder.path() / "s.plstore");
}

// With the digest that goes with the bytes.
std::string signed_again(std::string file) {
  const std::string_view body(file.data(), file.size() - 32);
  const std::string digest = sha256(bytes_of(body));
  for (size_t i = 0; i < 32; ++i)
    file[body.size() + i] = static_cast<char>(std::stoi(digest.substr(2 * i, 2), nullptr, 16));
  return file;
}

TEST(StoreFile, CutAtAnyByteItIsRefused) {
  const std::string file = whole_file();
  ASSERT_TRUE(read(file));
  const Bytes bytes(file);
  for (size_t length = 0; length < file.size(); ++length) {
    const auto got = NgramStore::read(bytes.span().first(length), "it");
    ASSERT_FALSE(got) << length;
    ASSERT_EQ(got.error().code, ErrorCode::BadFormat);
  }
  expect_refused(read(file.substr(0, 100)), ErrorCode::BadFormat, {"it: not a whole store", "100"});
  expect_refused(read(file + "x"), ErrorCode::BadFormat, {"entries take"});
}

TEST(StoreFile, AnyByteChangedItIsRefused) {
  const std::string file = whole_file();
  std::mt19937 random(3);
  for (int run = 0; run < 150; ++run) {
    std::string bad = file;
    const size_t at = run < 100 ? static_cast<size_t>(run) : random() % file.size();
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    EXPECT_FALSE(read(bad)) << at;
  }
}

TEST(StoreFile, WhatItClaimsIsCheckedThoughItsChecksumFits) {
  const std::string file = whole_file();
  ASSERT_TRUE(read(signed_again(file)));
  const auto with = [&](size_t at, auto value) {
    std::string bad = file;
    std::memcpy(bad.data() + at, &value, sizeof(value));
    return read(signed_again(bad));
  };
  const size_t first_at = sizeof(store_format::Header);
  const auto entry_at = static_cast<size_t>(store_format::kEntriesAt);
  uint64_t entry = 0;
  std::memcpy(&entry, file.data() + entry_at, 8);
  expect_refused(with(8, uint32_t{0}), ErrorCode::BadFormat, {"vocabulary of 0"});
  expect_refused(with(8, uint32_t{1} << 24), ErrorCode::BadFormat, {"vocabulary"});
  expect_refused(with(8, uint32_t{4}), ErrorCode::BadFormat, {"token that the vocabulary lacks"});
  expect_refused(with(12, uint32_t{1}), ErrorCode::BadFormat, {"1 entries take"});
  expect_refused(with(16, uint64_t{1} << 61), ErrorCode::BadFormat, {"more tokens than anybody"});
  expect_refused(with(24, char{'x'}), ErrorCode::BadFormat, {"SHA-256 of its trunk"});
  expect_refused(with(30, char{0}), ErrorCode::BadFormat, {"SHA-256 of its trunk"});
  expect_refused(with(first_at, uint32_t{1}), ErrorCode::BadFormat, {"index"});
  expect_refused(with(first_at + 400, uint32_t{0xffffffff}), ErrorCode::BadFormat, {"index"});
  expect_refused(with(entry_at, entry & 0xffffffffffff), ErrorCode::BadFormat, {"counts nothing"});
  expect_refused(with(entry_at, entry | 0xfffffe), ErrorCode::BadFormat, {"vocabulary lacks"});
}

TEST(StoreFile, CountsOfManyEntriesAddUp) {
  using namespace store_format;
  constexpr uint32_t kEntries = 40'000;  // of 65,535 each: beyond 2^31
  std::array<uint64_t, store_format::kOrders> keys = {};
  context_keys(Tokens{1}, keys);
  Header header;
  header.vocab_size = 300;
  header.n_entries = kEntries;
  std::string file(static_cast<size_t>(kEntriesAt) + kEntries * 8 + kDigestBytes, '\0');
  std::memcpy(file.data(), &header, sizeof(header));
  for (int b = 0; b <= kBuckets; ++b) {
    const uint32_t first = b > static_cast<int>(bucket_of(keys[0])) ? kEntries : 0;
    std::memcpy(file.data() + sizeof(header) + static_cast<size_t>(b) * 4, &first, 4);
  }
  const uint64_t entry = pack({.token = 7, .tag = tag_of(keys[0]), .age = 0, .count = kMostCount});
  for (uint32_t i = 0; i < kEntries; ++i)
    std::memcpy(file.data() + kEntriesAt + i * size_t{8}, &entry, 8);
  const Bytes bytes(signed_again(file));
  const auto store = NgramStore::read(bytes.span(), "it");
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(next_of(*store, Tokens{1}).total, int64_t{kEntries} * kMostCount);
}

TEST(StoreFile, AnotherTrunksStoreIsNotGrown) {
  const TemporaryFolder folder;
  store_of(folder, {{1, 2}});
  const auto path = folder.path() / "s.plstore";
  const std::string before = read_whole(path);
  StoreBuilder other(std::string(64, 'b'), 300);
  other.add(Tokens{1, 2});
  expect_refused(other.save_into(path), ErrorCode::BadFormat, {"another trunk", "aaaa", "bbbb"});
  EXPECT_EQ(read_whole(path), before);
  EXPECT_EQ(other.n_tokens(), 2) << "what it has is not lost";

  const auto damaged = folder.write("damaged.plstore", before.substr(0, 5000));
  StoreBuilder builder(kTrunk, 300);
  builder.add(Tokens{1, 2});
  expect_refused(builder.save_into(damaged), ErrorCode::BadFormat, {"not a whole store"});
  EXPECT_EQ(read_whole(damaged).size(), 5000u);
}

}  // namespace
}  // namespace paceline

#include "spec/store_builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/sha256.h"
#include "io/output_file.h"
#include "io/shown.h"
#include "spec/store_format.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

using namespace store_format;

std::vector<std::byte> from_hexadecimal(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

// An entry before it is packed.
struct Kept {
  uint64_t key = 0;
  Entry entry;
  bool leads = false;  // it is what its context predicts
};

// What is seen often and lately stays longest; what leads its context, longer than what does not.
double worth(const Kept& kept) {
  const double value = static_cast<double>(kept.entry.count) / (1 + kept.entry.age);
  return kept.leads ? value : value / 2;
}

// The `room` entries that are worth most, in their order. What is left of a context whose tokens
// all went goes too.
std::vector<Kept> fitted(std::vector<Kept> all, size_t room) {
  if (all.size() <= room) return all;
  std::vector<uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> worths;
  worths.reserve(all.size());
  for (const Kept& kept : all) worths.push_back(worth(kept));
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(room), order.end(),
                   [&](uint32_t a, uint32_t b) {
                     return worths[a] != worths[b] ? worths[a] > worths[b] : a < b;
                   });
  order.resize(room);
  std::sort(order.begin(), order.end());
  std::vector<Kept> best;
  best.reserve(room);
  for (const uint32_t i : order) {
    const bool orphan =
        all[i].entry.token == kOthers && (best.empty() || best.back().key != all[i].key);
    if (!orphan) best.push_back(all[i]);
  }
  return best;
}

std::vector<std::byte> packed(const std::vector<Kept>& kept, Header header) {
  header.n_entries = static_cast<uint32_t>(kept.size());
  std::vector<uint32_t> first(kBuckets + 1);
  for (const Kept& one : kept) ++first[bucket_of(one.key) + 1];
  for (int b = 0; b < kBuckets; ++b) first[b + 1] += first[b];
  std::vector<std::byte> bytes(kEntriesAt + kept.size() * 8);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), first.data(), first.size() * 4);
  for (size_t i = 0; i < kept.size(); ++i) {
    const uint64_t bits = pack(kept[i].entry);
    std::memcpy(bytes.data() + kEntriesAt + i * 8, &bits, 8);
  }
  const auto digest = from_hexadecimal(sha256(bytes));
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

// Held while a file is read, added to and replaced. It stands beside the file, since the file
// itself is another one afterwards.
class WriterLock {
 public:
  explicit WriterLock(const fs::path& path) {
    fs::path beside = path;
    beside += ".lock";
    fd_ = ::open(beside.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    // A file system without locks: whoever comes last wins, and what is there is whole.
    if (fd_ >= 0) (void)::flock(fd_, LOCK_EX);
  }
  ~WriterLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace

StoreBuilder::StoreBuilder(std::string trunk_sha256, int vocab_size, StoreLimits limits)
    : trunk_sha256_(std::move(trunk_sha256)), vocab_size_(vocab_size), limits_(limits) {
  check(vocab_size > 0 && static_cast<uint32_t>(vocab_size) <= kOthers, "ids fit into 24 bits");
  check(trunk_sha256_.empty() || trunk_sha256_.size() == 64, "a SHA-256 has 64 digits");
  check(limits.successors >= 1, "a context keeps what it predicts");
}

void StoreBuilder::add(std::span<const TokenId> answer) {
  std::array<uint64_t, store_format::kOrders> keys = {};
  for (size_t at = 0; at < answer.size(); ++at) {
    check(answer[at] >= 0 && answer[at] < vocab_size_, "a token is in the vocabulary");
    const int orders = context_keys(answer.first(at), keys);
    for (int n = 0; n < orders; ++n) {
      seen_.push_back({.what = keys[n] << 24 | static_cast<uint32_t>(answer[at]),
                       .count = 1,
                       .when = static_cast<uint64_t>(n_tokens_)});
    }
    ++n_tokens_;
  }
  constexpr size_t kEnough = 1 << 20;
  if (seen_.size() > 2 * n_merged_ + kEnough) {
    merge(seen_);
    n_merged_ = seen_.size();
  }
}

// One for each context and token, in their order.
void StoreBuilder::merge(std::vector<Seen>& all) {
  std::sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) { return a.what < b.what; });
  size_t n = 0;
  for (const Seen& seen : all) {
    if (n > 0 && all[n - 1].what == seen.what) {
      all[n - 1].count += seen.count;
      all[n - 1].when = std::max(all[n - 1].when, seen.when);
    } else {
      all[n++] = seen;
    }
  }
  all.resize(n);
}

// What was added here, behind what an older store holds.
std::vector<StoreBuilder::Seen> StoreBuilder::entries_with(const NgramStore* older) {
  std::vector<Seen> all = seen_;
  if (older != nullptr) {
    const auto start = static_cast<uint64_t>(older->n_tokens());
    for (Seen& seen : all) seen.when += start;
    for (int b = 0; b < kBuckets; ++b) {
      for (const uint64_t bits : older->bucket(b)) {
        const Entry entry = unpack(bits);
        const uint64_t key = uint64_t{static_cast<uint32_t>(b)} << kTagBits | entry.tag;
        const uint64_t age = uint64_t{entry.age} << kAgeShift;
        all.push_back({.what = key << 24 | entry.token,
                       .count = entry.count,
                       .when = start - std::min(start, age)});
      }
    }
  }
  merge(all);
  return all;
}

// The tokens of one context, most frequent first, those beyond the limit summed up. Counts that
// would not fit are halved together.
struct StoreBuilder::Context {
  uint64_t key = 0;
  uint64_t clock = 0;
  std::vector<Seen> tokens;
  uint64_t others = 0;

  void add(const Seen& seen) {
    if ((seen.what & kOthers) == kOthers)
      others += seen.count;
    else
      tokens.push_back(seen);
  }

  void move_to(std::vector<Kept>& kept, size_t most_tokens) {
    std::sort(tokens.begin(), tokens.end(), [](const Seen& a, const Seen& b) {
      if (a.count != b.count) return a.count > b.count;
      return a.when != b.when ? a.when > b.when : a.what < b.what;
    });
    for (; tokens.size() > most_tokens; tokens.pop_back()) others += tokens.back().count;
    const uint64_t most = std::max(others, tokens.empty() ? 0 : uint64_t{tokens[0].count});
    int halvings = 0;
    while (most >> halvings > kMostCount) ++halvings;
    const auto keep = [&](uint64_t token, uint64_t count, uint64_t age, bool leads) {
      const auto left = static_cast<uint32_t>(std::max<uint64_t>(count >> halvings, 1));
      kept.push_back({.key = key,
                      .entry = {.token = static_cast<uint32_t>(token),
                                .tag = tag_of(key),
                                .age = static_cast<uint32_t>(std::min<uint64_t>(age, kOldest)),
                                .count = left},
                      .leads = leads});
    };
    for (const Seen& seen : tokens) {
      const uint64_t age = (clock >> kAgeShift) - (seen.when >> kAgeShift);
      keep(seen.what & kOthers, seen.count, age, &seen == tokens.data());
    }
    if (others > 0 && !tokens.empty()) keep(kOthers, others, 0, false);
    tokens.clear();
    others = 0;
  }
};

Result<void> StoreBuilder::write(const fs::path& path, const NgramStore* older) {
  Header header;
  header.vocab_size = static_cast<uint32_t>(vocab_size_);
  header.n_tokens = static_cast<uint64_t>((older != nullptr ? older->n_tokens() : 0) + n_tokens_);
  std::copy(trunk_sha256_.begin(), trunk_sha256_.end(), header.trunk_sha256.begin());

  std::vector<Kept> kept;
  Context context;
  context.clock = header.n_tokens;
  for (const Seen& seen : entries_with(older)) {
    if (seen.what >> 24 != context.key) context.move_to(kept, limits_.successors);
    context.key = seen.what >> 24;
    context.add(seen);
  }
  context.move_to(kept, limits_.successors);
  const int64_t room = std::max<int64_t>((limits_.max_bytes - kFixedBytes) / 8, 0);
  const auto bytes = packed(fitted(std::move(kept), static_cast<size_t>(room)), header);

  auto file = OutputFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(bytes); !written) return written.error();
  return file->commit();
}

Result<void> StoreBuilder::save(const fs::path& path) { return write(path, nullptr); }

Result<void> StoreBuilder::save_into(const fs::path& given, const NgramStore* start) {
  std::error_code failure;
  const fs::path real = fs::canonical(given, failure);  // whose links stay, and lock is the one
  const fs::path path = failure ? given : real;
  const WriterLock lock(path);
  auto there = NgramStore::open(path);
  if (!there && there.error().code != ErrorCode::NotFound) return there.error();
  const NgramStore* const older = there ? there->get() : start;
  if (older != nullptr &&
      (older->trunk_sha256() != trunk_sha256_ || older->vocab_size() != vocab_size_)) {
    return Error{ErrorCode::BadFormat,
                 fmt::format("{}: a store of another trunk, SHA-256 {}; this one has {}",
                             shown_path(path), older->trunk_sha256(), trunk_sha256_)};
  }
  if (auto written = write(path, older); !written) return written;
  seen_.clear();
  n_merged_ = 0;
  n_tokens_ = 0;
  return {};
}

}  // namespace paceline

#include "spec/store_builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/sha256.h"
#include "io/output_file.h"
#include "spec/store_format.h"

namespace paceline {
namespace fs = std::filesystem;
namespace {

using namespace store_format;

// The entries of a store before they are packed.
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

std::vector<std::byte> from_hexadecimal(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
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

Result<void> StoreBuilder::write(const fs::path& path, const NgramStore* older) {
  const std::vector<Seen> all = entries_with(older);
  const auto clock = static_cast<uint64_t>((older ? older->n_tokens() : 0) + n_tokens_);

  std::vector<Kept> kept;
  std::vector<Seen> group;
  for (size_t begin = 0; begin < all.size();) {
    const uint64_t key = all[begin].what >> 24;
    group.clear();
    uint64_t others = 0;
    size_t end = begin;
    for (; end < all.size() && all[end].what >> 24 == key; ++end) {
      if ((all[end].what & kOthers) == kOthers)
        others += all[end].count;
      else
        group.push_back(all[end]);
    }
    begin = end;
    std::sort(group.begin(), group.end(), [](const Seen& a, const Seen& b) {
      if (a.count != b.count) return a.count > b.count;
      return a.when != b.when ? a.when > b.when : a.what < b.what;
    });
    for (; group.size() > static_cast<size_t>(limits_.successors); group.pop_back())
      others += group.back().count;
    // Counts that would not fit are halved together.
    int halvings = 0;
    const uint64_t most = std::max(others, group.empty() ? 0 : uint64_t{group[0].count});
    while (most >> halvings > kMostCount) ++halvings;
    const auto keep = [&](uint64_t token, uint64_t count, uint64_t age, bool leads) {
      const Entry entry = {
          .token = static_cast<uint32_t>(token),
          .tag = tag_of(key),
          .age = static_cast<uint32_t>(std::min<uint64_t>(age, kOldest)),
          .count = static_cast<uint32_t>(std::max<uint64_t>(count >> halvings, 1))};
      kept.push_back({.key = key, .entry = entry, .leads = leads});
    };
    for (size_t i = 0; i < group.size(); ++i) {
      keep(group[i].what & kOthers, group[i].count,
           (clock >> kAgeShift) - (group[i].when >> kAgeShift), i == 0);
    }
    if (others > 0 && !group.empty()) keep(kOthers, others, 0, false);
  }

  const int64_t room = std::max<int64_t>((limits_.max_bytes - kFixedBytes) / 8, 0);
  if (static_cast<int64_t>(kept.size()) > room) {
    std::vector<size_t> order(kept.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto better = [&](size_t a, size_t b) {
      const double left = worth(kept[a]);
      const double right = worth(kept[b]);
      return left != right ? left > right : a < b;
    };
    std::nth_element(order.begin(), order.begin() + room, order.end(), better);
    order.resize(room);
    std::sort(order.begin(), order.end());
    std::vector<Kept> best;
    best.reserve(order.size());
    for (const size_t i : order) best.push_back(kept[i]);
    kept = std::move(best);
  }

  Header header;
  header.vocab_size = static_cast<uint32_t>(vocab_size_);
  header.n_entries = static_cast<uint32_t>(kept.size());
  header.n_tokens = clock;
  std::copy(trunk_sha256_.begin(), trunk_sha256_.end(), header.trunk_sha256.begin());
  std::vector<uint32_t> first(kBuckets + 2);
  for (const Kept& one : kept) ++first[bucket_of(one.key) + 1];
  for (int b = 0; b < kBuckets; ++b) first[b + 1] += first[b];
  std::vector<std::byte> bytes(kEntriesAt + kept.size() * 8);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), first.data(), (kBuckets + 1) * 4);
  for (size_t i = 0; i < kept.size(); ++i) {
    const uint64_t bits = pack(kept[i].entry);
    std::memcpy(bytes.data() + kEntriesAt + i * 8, &bits, 8);
  }
  const auto digest = from_hexadecimal(sha256(bytes));
  bytes.insert(bytes.end(), digest.begin(), digest.end());

  auto file = OutputFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(bytes); !written) return written.error();
  return file->commit();
}

Result<void> StoreBuilder::save(const fs::path& path) { return write(path, nullptr); }

Result<void> StoreBuilder::save_into(const fs::path& path) {
  const WriterLock lock(path);
  auto older = NgramStore::open(path);
  if (!older && older.error().code != ErrorCode::NotFound) return older.error();
  if (older) {
    const NgramStore& store = **older;
    if (store.trunk_sha256() != trunk_sha256_ || store.vocab_size() != vocab_size_) {
      return Error{ErrorCode::BadFormat,
                   fmt::format("{}: a store of another trunk, SHA-256 {}; this one has {}",
                               path.string(), store.trunk_sha256(), trunk_sha256_)};
    }
  }
  if (auto written = write(path, older ? older->get() : nullptr); !written) return written;
  seen_.clear();
  n_merged_ = 0;
  n_tokens_ = 0;
  return {};
}

}  // namespace paceline

#include "engine/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace paceline {
namespace {

constexpr int kWidest = 16;
constexpr int kChunk = 32;        // rows in which a beginning is read, and those behind a fork
constexpr int kOddChunk = 7;      // the same for the reader of odd chunks
constexpr int kLead = kWidest;    // positions that the chain reads ahead
constexpr int kKept = 4 * kLead;  // rows of it that are kept
constexpr int kNeighbourRows = 5;
constexpr int kMostNeighbours = 3;
constexpr int kTreeDepth = kLead;  // of a tree's paths at most

// Results of the chain for the last kKept positions.
struct Kept {
  int first = 0;  // position
  std::vector<std::vector<float>> logits, hidden;

  explicit Kept(const ModelInfo& info)
      : logits(kKept, std::vector<float>(info.vocab_size)),
        hidden(kKept, std::vector<float>(info.dim)) {}
};

// Somebody who reads the text in blocks.
struct Reader {
  std::string name;
  int width = 1;
  int chunk = kChunk;
  int threads = 0;
  int neighbours = 0;  // other sequences in the same passes
  bool forks = false;  // goes on from a fork of its state halfway
  bool trees = false;  // of up to `width` rows
  std::unique_ptr<SequenceState> state = {};
  int blocks = 0;  // read so far
  std::vector<std::unique_ptr<SequenceState>> others = {};
};

class Walk {
 public:
  Walk(const Model& model, CacheType cache, const ProbeOptions& options, ProbeResult& result)
      : model_(model), cache_(cache), options_(options), result_(result), kept_(model.info()) {}

  // Reads text[0, end) where the walk begins at position `begin`.
  Result<void> run(std::span<const TokenId> text, int begin, int index);
  bool found() const { return result_.first_difference.has_value(); }

 private:
  void make_readers();
  Result<void> take_memory();
  Result<void> read_beginnings();
  // The chain reads up to position `to`, one token a pass, and keeps what it gets.
  void lead(int to);
  Result<void> follow(Reader& reader);
  Result<void> fork(Reader& reader);
  void read_block(Reader& reader, int rows, int n_true);
  void read_tree(Reader& reader, int depth);
  // The block, beside the reader's neighbours; what the block gave.
  TrunkOut pass(Reader& reader);
  void compare_row(const Reader& reader, const TrunkOut& out, int row);
  void grow_tree(int at, int rows, int depth);
  void read_chunks(Reader& reader, int to);
  void compare_floats(const Reader& reader, const char* tensor, int position,
                      std::span<const float> wanted, std::span<const float> found);
  void compare_caches(const Reader& reader, int begin, int end);
  void differs(const Reader& reader, const char* tensor, int position, int64_t at, uint32_t wanted,
               uint32_t found);
  Result<void> go_on() const {
    if (options_.stop && options_.stop()) return Error{ErrorCode::Interrupted, "interrupted"};
    return {};
  }

  const Model& model_;
  CacheType cache_;
  const ProbeOptions& options_;
  ProbeResult& result_;
  Kept kept_;
  std::span<const TokenId> text_;
  int begin_ = 0;
  int index_ = 0;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<SequenceState> chain_;
  std::vector<Reader> readers_;
  Block block_{std::max(kChunk, kMostTreeRows)};
  uint64_t random_ = 1;
  std::vector<int> path_, text_rows_;  // of a tree
  std::vector<Block> other_blocks_ = std::vector<Block>(kMostNeighbours, Block(kNeighbourRows));
  std::vector<std::byte> wanted_bytes_, found_bytes_;
};

// Every width, and on them the things that must not matter, one each.
void Walk::make_readers() {
  for (const int width : options_.widths)
    readers_.push_back({.name = fmt::format("width {}", width), .width = width});
  const auto give = [&](size_t from_front, const char* what, auto&& set) {
    Reader& reader = readers_[std::min(from_front, readers_.size() - 1)];
    reader.name += what;
    set(reader);
  };
  give(0, ", odd chunks", [](Reader& r) { r.chunk = kOddChunk; });
  give(1, ", beside another sequence", [](Reader& r) { r.neighbours = 1; });
  give(2, ", from a fork", [](Reader& r) { r.forks = true; });
  give(3, ", one thread", [](Reader& r) { r.threads = 1; });
  if (options_.walks > 1)
    give(4, ", beside sequences that come and go",
         [](Reader& r) { r.neighbours = kMostNeighbours; });
  for (int i = 0; i < options_.tree_readers; ++i) {
    Reader& reader =
        readers_.emplace_back(Reader{.name = fmt::format("trees of up to {} rows", kMostTreeRows),
                                     .width = kMostTreeRows,
                                     .trees = true});
    if (i == 0) {
      reader.name += ", beside another sequence";
      reader.neighbours = 1;
    } else {
      reader.name += ", from a fork, one thread";
      reader.forks = true;
      reader.threads = 1;
    }
  }
  result_.readers.clear();
  for (const Reader& reader : readers_) result_.readers.push_back(reader.name);
}

Result<void> Walk::take_memory() {
  const int capacity = static_cast<int>(text_.size());
  auto workspace =
      model_.make_workspace(block_.capacity() + kMostNeighbours * kNeighbourRows,
                            std::max(kWidest, kMostTreeRows) + kMostNeighbours * kNeighbourRows);
  if (!workspace) return workspace.error();
  workspace_ = std::move(*workspace);
  const auto new_state = [&](std::unique_ptr<SequenceState>& to) -> Result<void> {
    auto state = model_.make_state(capacity, cache_);
    if (!state) return state.error();
    to = std::move(*state);
    return {};
  };
  if (auto made = new_state(chain_); !made) return made;
  for (Reader& reader : readers_) {
    if (auto made = new_state(reader.state); !made) return made;
    reader.others.resize(reader.neighbours);
    for (auto& other : reader.others)
      if (auto made = new_state(other); !made) return made;
  }
  return {};
}

void Walk::differs(const Reader& reader, const char* tensor, int position, int64_t at,
                   uint32_t wanted, uint32_t found) {
  if (result_.first_difference) return;
  result_.first_difference = {.reader = reader.name,
                              .walk = index_,
                              .position = position,
                              .width = block_.rows(),
                              .tensor = tensor,
                              .index = at,
                              .wanted = wanted,
                              .found = found};
}

void Walk::compare_floats(const Reader& reader, const char* tensor, int position,
                          std::span<const float> wanted, std::span<const float> found) {
  result_.bytes += static_cast<int64_t>(wanted.size_bytes());
  if (std::memcmp(wanted.data(), found.data(), wanted.size_bytes()) == 0) return;
  for (size_t i = 0; i < wanted.size(); ++i) {
    uint32_t a;
    uint32_t b;
    std::memcpy(&a, &wanted[i], sizeof(a));
    std::memcpy(&b, &found[i], sizeof(b));
    if (a == b) continue;
    differs(reader, tensor, position, static_cast<int64_t>(i), a, b);
    return;
  }
}

// As far back as both remember.
void Walk::compare_caches(const Reader& reader, int begin, int end) {
  begin = std::max({begin, chain_->first_remembered(), reader.state->first_remembered()});
  for (int position = begin; position < end; ++position) {
    wanted_bytes_.clear();
    found_bytes_.clear();
    chain_->append_bytes(position, wanted_bytes_);
    reader.state->append_bytes(position, found_bytes_);
    result_.bytes += std::ssize(wanted_bytes_);
    if (wanted_bytes_ == found_bytes_) continue;
    const auto at = std::mismatch(wanted_bytes_.begin(), wanted_bytes_.end(), found_bytes_.begin(),
                                  found_bytes_.end());
    const auto index = at.first - wanted_bytes_.begin();
    differs(reader, "cache", position, index, static_cast<uint32_t>(*at.first),
            static_cast<uint32_t>(*at.second));
    return;
  }
}

// The chain stays near, so that a window remembers on both sides what is compared.
Result<void> Walk::read_beginnings() {
  for (int to = 0; to < begin_;) {
    to = std::min(to + kChunk, begin_);
    lead(to);
    for (Reader& reader : readers_) {
      read_chunks(reader, to);
      if (auto on = go_on(); !on) return on;
    }
  }
  return {};
}

void Walk::lead(int to) {
  workspace_->threads = 0;
  for (int at = chain_->length(); at < to; ++at) {
    block_.reset(at);
    block_.add(text_[at]);
    const TrunkOut out = model_.forward(block_, *chain_, LogitRows::All, *workspace_);
    chain_->commit(1);
    std::copy_n(out.logits.data, out.logits.cols, kept_.logits[at % kKept].begin());
    std::copy_n(out.hidden.data, out.hidden.cols, kept_.hidden[at % kKept].begin());
  }
}

// Without logits; what stays in the cache is compared.
void Walk::read_chunks(Reader& reader, int to) {
  workspace_->threads = reader.threads;
  while (reader.state->length() < to) {
    const int at = reader.state->length();
    block_.reset(at);
    for (int i = at; i < std::min(at + reader.chunk, to); ++i) block_.add(text_[i]);
    model_.forward(block_, *reader.state, LogitRows::None, *workspace_);
    reader.state->commit(block_.rows());
    compare_caches(reader, at, reader.state->length());
  }
}

// n_true tokens of the text and wrong ones behind them.
void Walk::read_block(Reader& reader, int rows, int n_true) {
  const int at = reader.state->length();
  block_.reset(at);
  for (int i = 0; i < rows; ++i) {
    const TokenId token = text_[at + i];
    block_.add(i < n_true ? token : (token + 1 + i) % model_.info().vocab_size);
  }
  const TrunkOut out = pass(reader);
  for (int i = 0; i < n_true; ++i) compare_row(reader, out, i);
  reader.state->commit(n_true);
  compare_caches(reader, at, at + n_true);
}

TrunkOut Walk::pass(Reader& reader) {
  std::vector<PassPart> parts = {{.block = &block_, .state = reader.state.get()}};
  size_t own = 0;
  for (size_t i = 0; i < reader.others.size(); ++i) {
    // With several, each sits out a pass now and then.
    if (reader.others.size() > 1 && (reader.blocks + static_cast<int>(i)) % 3 == 0) continue;
    SequenceState& other = *reader.others[i];
    Block& block = other_blocks_[i];
    const int n = 1 + (reader.blocks + static_cast<int>(i)) % kNeighbourRows;
    if (other.length() + n > other.capacity()) continue;
    block.reset(other.length());
    for (int row = 0; row < n; ++row)  // the text from its end
      block.add(text_[text_.size() - 1 - static_cast<size_t>(other.length() + row)]);
    const bool before = i % 2 == 1;  // some stand before the reader's rows, some behind
    parts.insert(before ? parts.begin() : parts.end(),
                 {.block = &block,
                  .state = &other,
                  .logit_rows = i == 0 ? LogitRows::All : LogitRows::Last});
    own += before ? 1 : 0;
  }
  workspace_->threads = reader.threads;
  model_.forward(parts, *workspace_);
  for (size_t i = 0; i < parts.size(); ++i)
    if (i != own) parts[i].state->commit(parts[i].block->rows());
  ++reader.blocks;
  return parts[own].out;
}

void Walk::compare_row(const Reader& reader, const TrunkOut& out, int row) {
  const int position = block_.positions()[row];
  const int at = position % kKept;
  compare_floats(reader, "logits", position, kept_.logits[at], out.logits.row(row));
  compare_floats(reader, "hidden", position, kept_.hidden[at], out.hidden.row(row));
}

// A random tree with no path longer than `depth`, in which the text is at least one of the paths,
// at rows of any number. Rows beside it have its token of their position at times, or a wrong one.
void Walk::grow_tree(int at, int rows, int depth) {
  const auto below = [this](int n) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    return static_cast<int>((random_ >> 33) % static_cast<uint64_t>(n));
  };
  const int n_true = 1 + below(std::min(rows, depth));
  block_.reset(at);
  text_rows_.clear();  // rows whose whole path is text
  int text_end = Block::kNoParent;
  for (int row = 0, placed = 0; row < rows; ++row) {
    int parent = text_end;
    if (below(rows - row) < n_true - placed) {
      ++placed;
      text_end = row;
    } else {
      parent = below(3) == 0 ? below(row + 1) - 1 : row - 1;
      if (parent >= 0 && block_.positions()[parent] + 1 - at >= depth) parent = Block::kNoParent;
    }
    const int position = parent < 0 ? at : block_.positions()[parent] + 1;
    const bool right = text_end == row || below(3) == 0;
    const TokenId token = right ? text_[position] : text_[position] + 1 + below(5);
    block_.add(token % model_.info().vocab_size, parent);
    const bool continues = parent < 0 || std::ranges::find(text_rows_, parent) != text_rows_.end();
    if (continues && block_.tokens()[row] == text_[position]) text_rows_.push_back(row);
  }
}

// Of the paths that are text the longest stands, or any, now and then none.
void Walk::read_tree(Reader& reader, int depth) {
  const int at = reader.state->length();
  random_ += static_cast<uint64_t>(reader.blocks);
  const int rows = 2 + static_cast<int>((random_ >> 33) % (kMostTreeRows - 1));
  grow_tree(at, rows, depth);
  const TrunkOut out = pass(reader);
  ++result_.trees;
  result_.tree_rows += rows;
  for (const int row : text_rows_) compare_row(reader, out, row);
  const auto nearer = [this](int a, int b) {
    return block_.positions()[a] < block_.positions()[b];
  };
  int kept = Block::kNoParent;
  if (reader.blocks % 3 == 0)
    kept = text_rows_[static_cast<size_t>(reader.blocks) % text_rows_.size()];
  else if (reader.blocks % 7 != 0)
    kept = *std::ranges::max_element(text_rows_, nearer);
  path_.clear();
  for (int row = kept; row >= 0; row = block_.parents()[row]) path_.insert(path_.begin(), row);
  reader.state->commit(path_);
  compare_caches(reader, at, reader.state->length());
}

// Every accept count in turn.
Result<void> Walk::follow(Reader& reader) {
  const int end = static_cast<int>(text_.size());
  for (;;) {
    const int at = reader.state->length();
    const int depth = std::min(reader.trees ? 1 + reader.blocks % kTreeDepth : reader.width,
                               end - at);  // positions that the block reaches
    if (depth == 0 || at + depth > chain_->length() || found()) return {};
    if (reader.trees)
      read_tree(reader, depth);
    else
      read_block(reader, depth, 1 + reader.blocks % depth);
    if (auto on = go_on(); !on) return on;
  }
}

// The first sequence goes, its fork reads on what was not shared.
Result<void> Walk::fork(Reader& reader) {
  const int length = reader.state->length();
  auto forked = reader.state->fork(reader.state->capacity(), length);
  if (!forked) return forked.error();
  reader.state = std::move(*forked);
  compare_caches(reader, 0, reader.state->length());
  read_chunks(reader, length);
  return {};
}

Result<void> Walk::run(std::span<const TokenId> text, int begin, int index) {
  text_ = text;
  begin_ = begin;
  index_ = index;
  make_readers();
  if (auto taken = take_memory(); !taken) return taken;
  if (auto read = read_beginnings(); !read) return read;
  const int end = static_cast<int>(text.size());
  bool forked = false;
  const int before = result_.positions;
  const auto start = std::chrono::steady_clock::now();
  const auto out_of_time = [&] {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    return options_.seconds > 0 && passed.count() > options_.seconds;
  };
  while (chain_->length() < end && !found() && (chain_->length() <= begin || !out_of_time())) {
    if (options_.progress)
      options_.progress("probing", static_cast<double>(chain_->length() - begin) / (end - begin));
    lead(std::min(end, chain_->length() + kLead));
    result_.positions = before + chain_->length() - begin;
    for (Reader& reader : readers_)
      if (auto followed = follow(reader); !followed) return followed;
    if (forked || 2 * chain_->length() < begin + end) continue;
    forked = true;
    for (Reader& reader : readers_) {
      if (!reader.forks) continue;
      if (auto done = fork(reader); !done) return done;
    }
  }
  return {};
}

std::string sentence(const Difference& d) {
  return fmt::format(
      "{} of position {} differ between a block ({}) and single tokens: element {} is {:08x} "
      "instead of {:08x}",
      d.tensor, d.position, d.reader, d.index, d.found, d.wanted);
}

}  // namespace

ProbeOptions long_probe() {
  ProbeOptions options{.positions = 2048, .widths = {}, .tree_readers = 2, .walks = 3};
  for (int width = 1; width <= kWidest; ++width) options.widths.push_back(width);
  return options;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Exact:
      return "exact";
    case Verdict::Inexact:
      return "inexact";
    case Verdict::NotRun:
      return "not_run";
  }
  return "not_run";
}

Result<ProbeResult> probe(const Model& model, std::span<const TokenId> text, int context,
                          CacheType cache, const ProbeOptions& options) {
  check(text.size() >= 2 && !options.widths.empty(), "a probe has a text and widths");
  for (const int width : options.widths)
    check(width >= 1 && width <= kWidest, "a probe's blocks have 1 to 16 rows");
  const auto start = std::chrono::steady_clock::now();
  ProbeResult result;
  result.widths = options.widths;
  // Every width is walked, and the fork behind it.
  const int widest = *std::max_element(options.widths.begin(), options.widths.end());
  const int least = 4 * widest;
  if (context < least) {
    result.reason = fmt::format(
        "a context of {} positions is too short to walk in with blocks of {} rows; wanted {}",
        context, widest, least);
    return result;
  }
  const int beginnings[] = {options.beginning, 1, 200};
  for (int i = 0; i < options.walks && !result.first_difference; ++i) {
    const int begin = std::min(beginnings[i % 3], context / 2);
    const int end = std::min(begin + options.positions, context);
    std::vector<TokenId> ids(end);
    for (int k = 0; k < end; ++k) ids[k] = text[(static_cast<size_t>(i) * 101 + k) % text.size()];
    Walk walk(model, cache, options, result);
    const auto walked = walk.run(ids, begin, i);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    result.seconds = seconds.count();
    if (walked || result.first_difference) continue;
    if (walked.error().code != ErrorCode::Interrupted) return walked.error();
    result.reason = walked.error().message;
    return result;
  }
  result.verdict = result.first_difference ? Verdict::Inexact : Verdict::Exact;
  if (result.first_difference) result.reason = sentence(*result.first_difference);
  return result;
}

std::string_view probe_text() {
  return R"(A line of riders crosses the plain. The first one breaks the wind, the others sit close
behind and save their strength; every minute the leader swings off and drifts to the back, and the
next one takes over. Alone, none of them would be this fast. Together they arrive at the same time,
and nobody has gone a metre that was not on the road.

def pace(riders, distance):
    turns = [0.0 for _ in riders]
    for k in range(distance):
        leader = k % len(riders)
        turns[leader] += 1.0
        if turns[leader] > 60 and k + 1 < distance:
            print(f"rider {leader} has led {turns[leader]:.1f} minutes")
    return turns

Dinner: 250 g rice, 3 onions, 1/2 lemon, 40 ml oil. Wash the rice, chop the onions, heat the oil.
Fry the onions for 12 minutes, add the rice, then 500 ml water. Wash up while it boils.
風よけは交代で。先頭が離れ、次の人が前に出る。Le peloton avance; chacun prend son tour, puis se
laisse glisser. Und am Ende kommen alle zugleich an. {"riders": [1, 2, 3], "led": {"1": 61.5}}
)";
}

}  // namespace paceline

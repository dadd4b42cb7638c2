#include "train/data.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/check.h"
#include "base/sha256.h"
#include "fmt/format.h"
#include "io/dump_check.h"
#include "io/shown.h"
#include "train/random.h"

namespace paceline::train {
namespace {

constexpr double kMostBad = 0.01;  // share of rows

// Rows that a stream offers: up to where a cycle begins.
int usable_rows(const DumpStream& stream) {
  return std::min(stream.positions(), stream.cycle_start);
}

// Cuts rows [first, last) into pieces of nearly equal size. A lone row has no target.
void add_pieces(int stream, int first, int last, int max_rows, std::vector<Piece>& to) {
  const int n = last - first;
  if (n < 2) return;
  const int parts = (n + max_rows - 1) / max_rows;
  for (int i = 0; i < parts; ++i) {
    const int begin = first + static_cast<int>(int64_t{n} * i / parts);
    const int end = first + static_cast<int>(int64_t{n} * (i + 1) / parts);
    if (end - begin >= 2) to.push_back({stream, begin, end - begin});
  }
}

int64_t rows_of(std::span<const Piece> pieces) {
  int64_t rows = 0;
  for (const Piece& piece : pieces) rows += piece.rows;
  return rows;
}

}  // namespace

double DataFacts::own_share() const {
  return own_tokens > 0 ? static_cast<double>(own_top1) / static_cast<double>(own_tokens) : 1.0;
}

bool is_held_out(std::string_view id, double share) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return Random(hash).uniform() < share;
}

Result<TrainingData> TrainingData::of(const Dump& dump, const DataOptions& options,
                                      ThreadPool& pool) {
  TrainingData data;
  data.dump_ = &dump;
  data.options_ = options;
  std::vector<std::vector<BadRow>> bad(dump.size());
  pool.run(dump.size(), [&](int, int i) {
    const DumpStream stream = dump.stream(i);
    bad[i] = find_bad_rows(stream, usable_rows(stream));
  });

  DataFacts& facts = data.facts_;
  int64_t rows = 0;
  std::vector<int> texts;
  for (int i = 0; i < dump.size(); ++i) {
    const DumpStream stream = dump.stream(i);
    const int usable = usable_rows(stream);
    rows += usable;
    facts.cycle_rows += stream.positions() - usable;
    if (!bad[i].empty() && facts.bad_rows == 0) facts.first_bad = sentence_of(stream, bad[i][0]);
    facts.bad_rows += std::ssize(bad[i]);
    if (stream.own_top1 >= 0) {
      facts.own_tokens += std::ssize(stream.tokens) - stream.n_prompt;
      facts.own_top1 += stream.own_top1;
    }
    const bool held_out = is_held_out(stream.id, options.held_out);
    std::vector<Piece>& pieces = held_out ? data.held_out_ : data.training_;
    int first = 0;
    for (const BadRow& each : bad[i]) {
      add_pieces(i, first, each.row, options.max_rows, pieces);
      first = each.row + 1;
    }
    add_pieces(i, first, usable, options.max_rows, pieces);
    if (held_out && bad[i].empty() && usable > stream.n_prompt)
      (stream.given_text ? texts : data.evaluation_streams_).push_back(i);
  }
  if (data.evaluation_streams_.empty()) data.evaluation_streams_ = texts;
  facts.positions = rows_of(data.training_);
  facts.held_out = rows_of(data.held_out_);
  if (static_cast<double>(facts.bad_rows) > kMostBad * static_cast<double>(rows))
    return Error{
        ErrorCode::BadFormat,
        fmt::format("{} of {} rows of the dump are not finite or all zero, more than one in "
                    "a hundred; the first: {}; collect it anew",
                    facts.bad_rows, rows, facts.first_bad)};
  if (data.training_.empty() || data.evaluation_streams_.empty())
    return Error{ErrorCode::BadFormat,
                 fmt::format("the dump's {} streams leave {} rows to train on and {} streams to "
                             "evaluate; collect more",
                             dump.size(), facts.positions, data.evaluation_streams_.size())};
  return data;
}

std::vector<TokenId> TrainingData::shortlist(int n, std::span<const TokenId> always,
                                             int vocab_size) const {
  if (n >= vocab_size) return {};
  std::vector<int64_t> counts(vocab_size);
  for (const Piece& piece : training_)
    for (const TokenId token :
         dump_->stream(piece.stream).tokens.subspan(piece.first + 1, piece.rows))
      ++counts[token];
  for (const TokenId token : always) counts[token] = INT64_MAX;
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocab_size; ++id)
    if (counts[id] > 0) ids.push_back(id);
  std::ranges::stable_sort(ids, [&](TokenId a, TokenId b) { return counts[a] > counts[b]; });
  const auto kept = std::max<int64_t>(n, std::ssize(always));
  if (std::ssize(ids) > kept) ids.resize(kept);
  std::ranges::sort(ids);
  return ids;
}

double TrainingData::coverage(std::span<const TokenId> shortlist) const {
  if (shortlist.empty()) return 1;
  int64_t tokens = 0;
  int64_t known = 0;
  for (const Piece& piece : training_)
    for (const TokenId token :
         dump_->stream(piece.stream).tokens.subspan(piece.first + 1, piece.rows)) {
      ++tokens;
      known += std::ranges::binary_search(shortlist, token) ? 1 : 0;
    }
  return static_cast<double>(known) / static_cast<double>(tokens);
}

std::string TrainingData::sha256() const {
  Sha256 digest;
  for (int i = 0; i < dump_->size(); ++i) {
    const DumpStream stream = dump_->stream(i);
    digest.update(std::as_bytes(std::span(stream.id)));
    digest.update(std::as_bytes(stream.tokens));
  }
  return digest.finish();
}

// --- order ---------------------------------------------------------------------------------------

PieceOrder::PieceOrder(int n_pieces, int per_step, uint64_t seed)
    : n_(n_pieces), per_step_(per_step), seed_(seed), order_(n_pieces) {
  check(n_pieces >= 1 && per_step >= 1, "there is a piece for each step");
}

void PieceOrder::draw(int64_t pass) {
  pass_ = pass;
  for (int i = 0; i < n_; ++i) order_[i] = i;
  Random random(seed_ * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(pass));
  for (int i = n_ - 1; i > 0; --i) std::swap(order_[i], order_[random.below(i + 1)]);
}

std::vector<int> PieceOrder::of_step(int64_t step) {
  std::vector<int> pieces;
  for (int i = 0; i < per_step_; ++i) {
    const int64_t at = step * per_step_ + i;
    if (at / n_ != pass_) draw(at / n_);
    pieces.push_back(order_[at % n_]);
  }
  return pieces;
}

// --- batches -------------------------------------------------------------------------------------

BatchBuilder::BatchBuilder(const TrainingData& data, const TrunkSide& trunk, Tap tap,
                           std::span<const TokenId> words, Targets targets, int depths)
    : data_(&data),
      trunk_(&trunk),
      tap_(tap),
      targets_(targets),
      n_depths_(depths),
      index_of_word_(trunk.vocab_size(), -1) {
  if (words.empty())
    for (int id = 0; id < trunk.vocab_size(); ++id) index_of_word_[id] = id;
  for (size_t i = 0; i < words.size(); ++i) index_of_word_[words[i]] = static_cast<int>(i);
}

const NetBatch& BatchBuilder::build(std::span<const Piece> pieces, int depths, double beta,
                                    int pieces_of_step) {
  check(depths <= n_depths_, "no more depths than the net has");
  pieces_.assign(pieces.begin(), pieces.end());
  const int dim = trunk_->dim();
  const auto rows = static_cast<int>(rows_of(pieces));
  hidden_.resize(static_cast<size_t>(rows) * dim);
  embedding_.assign(static_cast<size_t>(rows + n_depths_ - 1) * dim, 0.0f);
  batch_.segments.clear();
  batch_.weights.assign(n_depths_, std::vector<float>(rows, 0.0f));
  batch_.hard.assign(n_depths_, std::vector<int>(rows, -1));
  batch_.hidden = {hidden_.data(), rows, dim};
  batch_.embedding = {embedding_.data(), rows + n_depths_ - 1, dim};
  targets_of_batch_ = 0;

  double norm = 0;
  for (int depth = 0; depth < depths; ++depth) norm += std::pow(beta, depth);
  int first = 0;
  for (const Piece& piece : pieces) {
    const DumpStream stream = data_->dump().stream(piece.stream);
    batch_.segments.push_back({first, piece.rows});
    for (int row = 0; row < piece.rows; ++row) {
      const size_t at = static_cast<size_t>(first + row) * dim;
      stream.hidden(piece.first + row, std::span(hidden_).subspan(at, dim));
      trunk_->embed(stream.tokens[piece.first + row + 1], std::span(embedding_).subspan(at, dim));
    }
    for (int depth = 1; depth <= depths; ++depth) {
      int n = 0;
      for (int row = 0; row + depth < piece.rows; ++row) {
        const int target = piece.first + row + depth + 1;  // its place in the text
        const int word = index_of_word_[stream.tokens[target]];
        batch_.hard[depth - 1][first + row] = word;
        const bool wanted = (data_->options().prompt_rows || target >= stream.n_prompt) &&
                            (targets_ != Targets::Hard || word >= 0);
        if (!wanted) continue;
        batch_.weights[depth - 1][first + row] = 1;
        ++n;
      }
      if (depth == 1) targets_of_batch_ += n;
      if (n == 0) continue;
      const auto weight = static_cast<float>(std::pow(beta, depth - 1) / norm / n / pieces_of_step);
      for (int row = 0; row < piece.rows; ++row) batch_.weights[depth - 1][first + row] *= weight;
    }
    first += piece.rows;
  }
  batch_.final_hidden = batch_.hidden;
  if (tap_ == Tap::Before) {
    final_hidden_ = hidden_;
    trunk_->final_norm({final_hidden_.data(), rows, dim});
    batch_.final_hidden = {final_hidden_.data(), rows, dim};
  }
  return batch_;
}

std::string BatchBuilder::example() const {
  const Piece& piece = pieces_.front();
  const DumpStream stream = data_->dump().stream(piece.stream);
  const int row = piece.first + (piece.rows - 2) / 2;
  return fmt::format(
      "row {} of stream {}: the hidden of token {}, with token {} behind it, is to "
      "guess {}",
      row, quoted_name(stream.id), stream.tokens[row], stream.tokens[row + 1],
      stream.tokens[row + 2]);
}

}  // namespace paceline::train

#include "text/bpe_gguf_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text/utf8.h"

namespace paceline {

namespace {

// Far above any piece; the ways of cutting a token in two are tried one by one.
constexpr size_t kLongestPiece = 512;

// The values of tokenizer.ggml.token_type.
constexpr int32_t kNormal = 1;
constexpr int32_t kUnknown = 2;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;
constexpr int32_t kUnused = 5;
constexpr int32_t kByte = 6;

Error bad(std::string message) { return {ErrorCode::BadFormat, std::move(message)}; }

Result<BpeToken> read_token(std::string_view written, int32_t type, size_t id) {
  if (!is_valid_utf8(written) || (written.empty() && type != kUnused))
    return bad(fmt::format("tokenizer.ggml.tokens[{}] is empty or not valid UTF-8", id));
  switch (type) {
    case kNormal:
      return BpeToken{decoded_piece(written, /*byte_tokens=*/false), TokenKind::Normal};
    case kUnknown:
    case kControl:
      return BpeToken{std::string(written), TokenKind::Special};
    case kUserDefined:
      return BpeToken{decoded_piece(written, /*byte_tokens=*/false), TokenKind::Added};
    case kUnused:
      return BpeToken{std::string(written), TokenKind::Unused};
    case kByte: {
      if (const auto byte = byte_of_token(written))
        return BpeToken{std::string(1, static_cast<char>(*byte)), TokenKind::Normal};
      return bad(
          fmt::format("tokenizer.ggml.tokens[{}] is \"{}\", but by its type a byte such as "
                      "<0x0A>",
                      id, shown(written)));
    }
    default:
      return bad(
          fmt::format("tokenizer.ggml.token_type[{}] is {}; a vocabulary with scores has the "
                      "types 1 to 6",
                      id, type));
  }
}

bool merges_to(const GgufVocab& vocab, TokenId id) {
  return vocab.token_types[static_cast<size_t>(id)] == kNormal;
}

// Rank 0 for the highest score; equal scores have one rank.
std::vector<uint32_t> ranks_of(std::span<const double> scores) {
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  std::vector<uint32_t> ranks(scores.size());
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++rank;
    ranks[order[i]] = rank;
  }
  return ranks;
}

}  // namespace

Result<void> read_scored_vocab(const GgufVocab& vocab, const TokenIndex& by_text, BpeSpec& spec) {
  const size_t n = vocab.tokens.size();
  if (vocab.scores.size() != n)
    return bad(
        fmt::format("tokenizer.ggml.scores has {} entries for {} tokens", vocab.scores.size(), n));
  if (!std::all_of(vocab.scores.begin(), vocab.scores.end(),
                   [](double score) { return std::isfinite(score); }))
    return bad("tokenizer.ggml.scores has a score that is no number");

  std::array<TokenId, 256> byte_tokens;
  byte_tokens.fill(-1);
  spec.tokens.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    const auto id = static_cast<TokenId>(i);
    const int32_t type = vocab.token_types[i];
    auto token = read_token(vocab.tokens[i], type, i);
    if (!token) return token.error();
    if (type == kByte) byte_tokens[static_cast<uint8_t>(token->bytes[0])] = id;
    if (type == kUnknown && spec.unknown < 0) spec.unknown = id;
    if (type == kNormal || type == kUserDefined)
      if (const auto code = only_character(vocab.tokens[i])) spec.char_tokens.add(*code, id);
    spec.tokens.push_back(std::move(*token));
  }
  const auto n_bytes = 256 - std::count(byte_tokens.begin(), byte_tokens.end(), -1);
  if (n_bytes == 256)
    spec.byte_fallback = byte_tokens;
  else if (n_bytes > 0)
    return bad(fmt::format("tokenizer.ggml.tokens has {} of the 256 bytes", n_bytes));
  if (spec.char_tokens.empty()) return bad("tokenizer.ggml.tokens has no token of one character");

  const std::vector<uint32_t> ranks = ranks_of(vocab.scores);
  for (size_t i = 0; i < n; ++i) {
    if (!merges_to(vocab, static_cast<TokenId>(i))) continue;
    const std::string_view text = vocab.tokens[i];
    if (text.size() > kLongestPiece)
      return Error{
          ErrorCode::Unsupported,
          fmt::format("tokenizer.ggml.tokens[{}] has {} bytes; more than {} in a vocabulary "
                      "with scores are not known here",
                      i, text.size(), kLongestPiece)};
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) continue;  // within a character
      const TokenId left = by_text.find(text.substr(0, cut));
      const TokenId right = by_text.find(text.substr(cut));
      const auto in_texts = [&](TokenId id) {
        if (id < 0) return false;
        const int32_t type = vocab.token_types[static_cast<size_t>(id)];
        return type == kNormal || type == kUserDefined;
      };
      if (in_texts(left) && in_texts(right))
        spec.merges.push_back({left, right, static_cast<TokenId>(i), ranks[i]});
    }
  }
  spec.description = spec.byte_fallback ? "BPE by scores, with byte fallback" : "BPE by scores";
  spec.fuse_unknown = true;
  std::vector<NormalizeStep> steps;
  if (vocab.adds_space) {
    steps.push_back({NormalizeStep::Kind::Prepend, "", std::string(kSpaceBar)});
    spec.spaces_off_front = 1;
  }
  steps.push_back({NormalizeStep::Kind::Replace, " ", std::string(kSpaceBar)});
  spec.normalizer = Normalizer(std::move(steps));
  return {};
}

}  // namespace paceline

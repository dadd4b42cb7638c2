#include "text/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "text/utf8.h"
#include "text/word_cache.h"

namespace paceline {

namespace {

class BpeTokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> make(BpeSpec spec);

  int vocab_size() const override { return static_cast<int>(tokens_.size()); }
  std::string description() const override { return description_; }
  void encode(std::string_view text, bool read_specials, std::vector<TokenId>& ids) const override;

  std::string_view bytes(TokenId id) const override {
    return knows(id) ? tokens_[static_cast<size_t>(id)].bytes : std::string_view();
  }
  bool is_special(TokenId id) const override {
    return knows(id) && tokens_[static_cast<size_t>(id)].kind == TokenKind::Special;
  }
  std::optional<TokenId> special_id(std::string_view text) const override {
    const auto found = specials_.find(text);
    if (found == specials_.end()) return std::nullopt;
    return found->second;
  }
  std::optional<TokenId> bos() const override { return bos_; }
  bool adds_bos() const override { return adds_bos_; }
  std::span<const TokenId> end_ids() const override { return end_ids_; }

 private:
  bool knows(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < tokens_.size(); }
  // Cuts `text` at the tokens of sets[0], what lies between at those of sets[1], and encodes the
  // rest.
  void encode_around(std::span<const AddedTokens* const> sets, std::string_view text,
                     WordCache& cache, std::vector<TokenId>& ids) const;
  void encode_plain(std::string_view text, WordCache& cache, std::vector<TokenId>& ids) const;

  std::vector<BpeToken> tokens_;
  std::unordered_map<std::string_view, TokenId> specials_;  // views into tokens_
  // Index 1 holds special tokens as well. first_: before, second_: in what first_ has left over.
  AddedTokens first_[2], second_[2];
  BpeModel model_;
  std::vector<CutStep> steps_;
  std::string description_;
  std::optional<TokenId> bos_;
  bool adds_bos_ = false;
  std::vector<TokenId> end_ids_;
};

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::make(BpeSpec spec) {
  auto made = std::make_unique<BpeTokenizer>();
  BpeModel::Options options;
  options.byte_tokens.fill(-1);
  options.unknown = spec.unknown;
  options.fuse_unknown = spec.fuse_unknown;
  made->tokens_ = std::move(spec.tokens);
  for (size_t i = 0; i < made->tokens_.size(); ++i) {
    const BpeToken& token = made->tokens_[i];
    const auto id = static_cast<TokenId>(i);
    if (token.kind == TokenKind::Normal) {
      if (token.bytes.size() == 1) options.byte_tokens[static_cast<uint8_t>(token.bytes[0])] = id;
      if (spec.takes_whole_pieces) options.whole_pieces.emplace(token.bytes, id);
    } else if (token.kind != TokenKind::Unused) {
      AddedTokens* sets = token.after_added ? made->second_ : made->first_;
      sets[1].add(token.bytes, id);
      if (token.kind == TokenKind::Added) sets[0].add(token.bytes, id);
      if (token.kind == TokenKind::Special) made->specials_.emplace(token.bytes, id);
    }
  }
  for (int i : {0, 1}) {
    made->first_[i].sort();
    made->second_[i].sort();
  }
  const auto n_missing = std::count(options.byte_tokens.begin(), options.byte_tokens.end(), -1);
  made->description_ = "byte-level BPE, " + spec.steps_name;
  if (n_missing > 0) made->description_ += fmt::format(", {} bytes without a token", n_missing);

  auto model = BpeModel::make(std::move(spec.merges), std::move(options));
  if (!model) return model.error();
  made->model_ = std::move(*model);
  made->steps_ = std::move(spec.steps);
  made->bos_ = spec.bos;
  made->adds_bos_ = spec.adds_bos && spec.bos;
  made->end_ids_ = std::move(spec.end_ids);
  return std::unique_ptr<Tokenizer>(std::move(made));
}

void BpeTokenizer::encode(std::string_view text, bool read_specials,
                          std::vector<TokenId>& ids) const {
  std::string replaced;
  if (!is_valid_utf8(text)) {
    replaced = replace_invalid_utf8(text);
    text = replaced;
  }
  ids.reserve(ids.size() + text.size() / 4 + 1);  // English: over four bytes a token
  WordCache cache;
  const AddedTokens* const sets[] = {&first_[read_specials], &second_[read_specials]};
  encode_around(sets, text, cache, ids);
}

void BpeTokenizer::encode_around(std::span<const AddedTokens* const> sets, std::string_view text,
                                 WordCache& cache, std::vector<TokenId>& ids) const {
  if (sets.empty()) return encode_plain(text, cache, ids);
  size_t pos = 0;
  while (const auto match = sets[0]->find(text, pos)) {
    encode_around(sets.subspan(1), text.substr(pos, match->pos - pos), cache, ids);
    ids.push_back(match->id);
    pos = match->pos + match->length;
  }
  encode_around(sets.subspan(1), text.substr(pos), cache, ids);
}

void BpeTokenizer::encode_plain(std::string_view text, WordCache& cache,
                                std::vector<TokenId>& ids) const {
  const auto merge = [this](std::string_view piece, std::vector<TokenId>& out) {
    model_.encode(piece, out);
  };
  const auto sink = [&](std::string_view piece) { cache.append(piece, ids, merge); };
  for_each_piece(steps_.data(), steps_.data() + steps_.size(), text, sink);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_bpe(BpeSpec spec) {
  return BpeTokenizer::make(std::move(spec));
}

Result<Merge> find_merge(const TokensByText& tokens, std::string_view left, std::string_view right,
                         size_t index) {
  const std::string merged = std::string(left) + std::string(right);
  Merge merge;
  for (auto [text, id] : {std::pair<std::string_view, TokenId*>{left, &merge.left},
                          {right, &merge.right},
                          {merged, &merge.merged}}) {
    const auto found = tokens.find(text);
    if (found == tokens.end())
      return Error{ErrorCode::BadFormat,
                   fmt::format("merge {} (\"{} {}\") needs \"{}\", which is "
                               "not in the vocabulary",
                               index, shown(left), shown(right), shown(text))};
    *id = found->second;
  }
  return merge;
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 60;
  std::string out = replace_invalid_utf8(text.substr(0, kLongest));
  for (char& c : out)
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) c = '?';
  if (text.size() > kLongest) out += "...";
  return out;
}

}  // namespace paceline

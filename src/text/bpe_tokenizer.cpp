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
  void encode(std::string_view text, bool read_specials, std::vector<TokenId>& ids,
              bool continues) const override;

  std::string_view bytes(TokenId id) const override {
    return knows(id) ? tokens_[static_cast<size_t>(id)].bytes : std::string_view();
  }
  bool is_special(TokenId id) const override {
    return knows(id) && tokens_[static_cast<size_t>(id)].kind == TokenKind::Special;
  }
  const AddedTokens& specials() const override { return specials_; }
  int spaces_off_front() const override { return spaces_off_front_; }
  std::optional<TokenId> bos() const override { return bos_; }
  bool adds_bos() const override { return adds_bos_; }
  std::span<const TokenId> end_ids() const override { return end_ids_; }

 private:
  // One call of encode.
  struct Run {
    bool read_specials = false;
    std::vector<TokenId>& ids;
    WordCache cache;
  };

  bool knows(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < tokens_.size(); }
  // Cuts text at the tokens of `added` and gives what lies between to rest(piece, position).
  template <class Rest>
  static void cut_out(const AddedTokens& added, std::string_view text, Run& run, const Rest& rest);
  void encode_rest(std::string_view text, bool at_start, Run& run) const;
  void encode_pieces(std::string_view text, Run& run) const;
  void find_joining_bytes(const std::vector<Merge>& merges);

  std::vector<BpeToken> tokens_;
  AddedTokens first_, second_;  // cut from the text as it is, and from what is normalized
  AddedTokens specials_;        // those of both that are special
  Normalizer normalizer_;
  std::optional<BarSpaces> bar_spaces_;
  std::vector<CutStep> steps_;
  BpeModel model_;
  // Whether a piece may also be cut before a bar: no merge crosses that place unless the byte
  // before it is among joins_bar_. It changes no id; it keeps pieces short, and the cache of words
  // useful.
  bool cuts_before_bars_ = false;
  bool joins_bar_[256] = {};
  std::string description_;
  int spaces_off_front_ = 0;
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
  made->description_ = std::move(spec.description);
  if (!spec.char_tokens.empty()) {
    constexpr uint32_t kBarCode = 0x2581;
    made->cuts_before_bars_ = spec.char_tokens.of(kBarCode) >= 0 && !spec.takes_whole_pieces;
    options.char_tokens = std::move(spec.char_tokens);
    if (spec.byte_fallback) options.byte_tokens = *spec.byte_fallback;
    made->find_joining_bytes(spec.merges);
  } else {
    for (size_t i = 0; i < made->tokens_.size(); ++i) {
      const BpeToken& token = made->tokens_[i];
      if (token.kind == TokenKind::Normal && token.bytes.size() == 1)
        options.byte_tokens[static_cast<uint8_t>(token.bytes[0])] = static_cast<TokenId>(i);
    }
    const auto n_missing = std::count(options.byte_tokens.begin(), options.byte_tokens.end(), -1);
    if (n_missing > 0) made->description_ += fmt::format(", {} bytes without a token", n_missing);
  }
  if (spec.takes_whole_pieces) {
    for (size_t i = 0; i < made->tokens_.size(); ++i) {
      const BpeToken& token = made->tokens_[i];
      if (token.kind == TokenKind::Normal)
        options.whole_pieces.emplace(token.bytes, static_cast<TokenId>(i));
    }
  }
  auto model = BpeModel::make(spec.merges, std::move(options));
  if (!model) return model.error();
  made->model_ = std::move(*model);

  std::vector<AddedToken> specials;
  for (const auto* tokens : {&spec.added, &spec.added_normalized})
    std::copy_if(tokens->begin(), tokens->end(), std::back_inserter(specials),
                 [](const AddedToken& token) { return token.is_special; });
  made->specials_ = AddedTokens(std::move(specials));
  made->first_ = AddedTokens(std::move(spec.added));
  made->second_ = AddedTokens(std::move(spec.added_normalized));
  made->normalizer_ = std::move(spec.normalizer);
  made->bar_spaces_ = spec.bar_spaces;
  made->steps_ = std::move(spec.steps);
  made->spaces_off_front_ = spec.spaces_off_front;
  made->bos_ = spec.bos;
  made->adds_bos_ = spec.adds_bos && spec.bos;
  made->end_ids_ = std::move(spec.end_ids);
  return std::unique_ptr<Tokenizer>(std::move(made));
}

// Bars are spaces in the tokens' bytes. A true space may stand there too: then a byte more counts
// as joining, which costs a cut and no id.
void BpeTokenizer::find_joining_bytes(const std::vector<Merge>& merges) {
  for (const Merge& merge : merges) {
    if (!bytes(merge.right).starts_with(' ')) continue;
    const std::string_view left = bytes(merge.left);
    if (!left.empty()) joins_bar_[static_cast<uint8_t>(left.back())] = true;
  }
  joins_bar_[static_cast<uint8_t>(kSpaceBar.back())] = true;  // a run of bars stays together
}

void BpeTokenizer::encode(std::string_view text, bool read_specials, std::vector<TokenId>& ids,
                          bool continues) const {
  std::string replaced;
  if (!is_valid_utf8(text)) {
    replaced = replace_invalid_utf8(text);
    text = replaced;
  }
  ids.reserve(ids.size() + text.size() / 4 + 1);  // English: over four bytes a token
  Run run{read_specials, ids, {}};
  cut_out(first_, text, run, [&](std::string_view piece, size_t position) {
    std::string room;
    const std::string_view normalized = normalizer_.apply(piece, room);
    cut_out(second_, normalized, run, [&](std::string_view rest, size_t behind) {
      encode_rest(rest, !continues && position == 0 && behind == 0, run);
    });
  });
}

template <class Rest>
void BpeTokenizer::cut_out(const AddedTokens& added, std::string_view text, Run& run,
                           const Rest& rest) {
  size_t pos = 0;
  size_t from = 0;
  while (const auto match = added.find(text, from, pos, run.read_specials)) {
    if (match->begin > pos) rest(text.substr(pos, match->begin - pos), pos);
    run.ids.push_back(match->id);
    pos = match->end;
    from = match->next;
  }
  if (pos < text.size()) rest(text.substr(pos), pos);
}

void BpeTokenizer::encode_rest(std::string_view text, bool at_start, Run& run) const {
  if (!bar_spaces_) return encode_pieces(text, run);
  std::string replaced = barred(text);
  const bool prefixed = bar_spaces_->prefix == BarSpaces::Prefix::Always ||
                        (bar_spaces_->prefix == BarSpaces::Prefix::First && at_start);
  if (!prefixed || replaced.starts_with(kSpaceBar)) return encode_pieces(replaced, run);
  encode_pieces(replaced.insert(0, kSpaceBar), run);
}

void BpeTokenizer::encode_pieces(std::string_view text, Run& run) const {
  const auto merge = [this](std::string_view piece, std::vector<TokenId>& out) {
    model_.encode(piece, out);
  };
  const auto sink = [&](std::string_view piece) {
    size_t pos = 0;
    if (cuts_before_bars_) {
      for (size_t bar = piece.find(kSpaceBar, 1); bar != piece.npos;
           bar = piece.find(kSpaceBar, bar + kSpaceBar.size())) {
        if (joins_bar_[static_cast<uint8_t>(piece[bar - 1])]) continue;
        run.cache.append(piece.substr(pos, bar - pos), run.ids, merge);
        pos = bar;
      }
    }
    run.cache.append(piece.substr(pos), run.ids, merge);
  };
  for_each_piece(steps_.data(), steps_.data() + steps_.size(), text, sink);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_bpe(BpeSpec spec) {
  return BpeTokenizer::make(std::move(spec));
}

Result<Merge> find_merge(const TokenIndex& tokens, std::string_view left, std::string_view right,
                         size_t index) {
  std::string merged(left);
  merged += right;
  Merge merge{tokens.find(left), tokens.find(right), tokens.find(merged),
              static_cast<uint32_t>(index)};
  if (merge.left >= 0 && merge.right >= 0 && merge.merged >= 0) return merge;
  const std::string_view missing = merge.left < 0 ? left : merge.right < 0 ? right : merged;
  return Error{ErrorCode::BadFormat,
               fmt::format("merge {} (\"{} {}\") needs \"{}\", which is not in the vocabulary",
                           index, shown(left), shown(right), shown(missing))};
}

std::optional<uint8_t> byte_of_token(std::string_view written) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (written.size() != 6 || !written.starts_with("<0x") || written[5] != '>') return std::nullopt;
  const size_t high = kDigits.find(written[3]);
  const size_t low = kDigits.find(written[4]);
  if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

std::string decoded_piece(std::string_view written, bool byte_tokens) {
  if (byte_tokens)
    if (const auto byte = byte_of_token(written)) return std::string(1, static_cast<char>(*byte));
  std::string bytes;
  size_t pos = 0;
  for (size_t bar = written.find(kSpaceBar); bar != written.npos;
       bar = written.find(kSpaceBar, pos)) {
    bytes.append(written, pos, bar - pos);
    bytes += ' ';
    pos = bar + kSpaceBar.size();
  }
  bytes += written.substr(pos);
  return bytes;
}

std::string barred(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ')
      out += kSpaceBar;
    else
      out += c;
  }
  return out;
}

std::optional<uint32_t> only_character(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const Utf8Char c = read_utf8(text, 0);
  if (c.kind != Utf8Kind::Valid || static_cast<size_t>(c.length) != text.size())
    return std::nullopt;
  return c.code;
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

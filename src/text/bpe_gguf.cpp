// BPE from the metadata of a GGUF file.
#include <fmt/format.h>

#include <set>

#include "text/bpe.h"
#include "text/bpe_gguf_scores.h"
#include "text/bpe_tokenizer.h"
#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace paceline {

namespace {

Error bad(std::string message) { return {ErrorCode::BadFormat, std::move(message)}; }

Result<BpeToken> read_token(std::string_view written, int32_t type, size_t id) {
  BpeToken token;
  switch (type) {
    case 1: {
      auto bytes = from_byte_alphabet(written);
      if (!bytes || bytes->empty())
        return bad(
            fmt::format("tokenizer.ggml.tokens[{}] is \"{}\", which is no text in the byte "
                        "alphabet of a byte-level vocabulary",
                        id, shown(written)));
      token.kind = TokenKind::Normal;
      token.bytes = std::move(*bytes);
      return token;
    }
    case 2:
    case 3:
      token.kind = TokenKind::Special;
      break;
    case 4:
      token.kind = TokenKind::Added;
      break;
    case 5:
      token.kind = TokenKind::Unused;
      break;
    default:
      return bad(
          fmt::format("tokenizer.ggml.token_type[{}] is {}; a byte-level vocabulary has the "
                      "types 1 to 5",
                      id, type));
  }
  if (!is_valid_utf8(written) || (written.empty() && token.kind != TokenKind::Unused))
    return bad(fmt::format("tokenizer.ggml.tokens[{}] is empty or not valid UTF-8", id));
  token.bytes = std::string(written);
  return token;
}

Result<void> read_merges(const GgufVocab& vocab, const TokenIndex& by_text,
                         std::vector<Merge>& merges) {
  merges.reserve(vocab.merges.size());
  for (size_t i = 0; i < vocab.merges.size(); ++i) {
    const std::string_view line = vocab.merges[i];
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || line.find(' ', blank + 1) != std::string_view::npos)
      return bad(
          fmt::format("tokenizer.ggml.merges[{}] is \"{}\", not two tokens with one blank "
                      "between them",
                      i, shown(line)));
    auto merge = find_merge(by_text, line.substr(0, blank), line.substr(blank + 1), i);
    if (!merge) return bad("tokenizer.ggml.merges: " + merge.error().message);
    merges.push_back(*merge);
  }
  return {};
}

// tokenizer.ggml.model = "gpt2".
Result<void> read_byte_level(const GgufVocab& vocab, const TokenIndex& by_text, BpeSpec& spec) {
  if (vocab.pre.empty())
    return Error{ErrorCode::Unsupported,
                 "the file has no tokenizer.ggml.pre, so how it cuts text into words is not known"};
  auto steps = cut_steps_of_pre(vocab.pre);
  if (!steps) return Error{steps.error().code, "tokenizer.ggml.pre: " + steps.error().message};
  spec.steps = std::move(*steps);
  spec.description = "byte-level BPE, " + std::string(vocab.pre);
  spec.takes_whole_pieces = vocab.pre == "llama-bpe";  // Llama 3 sets ignore_merges
  if (vocab.pre == "qwen2" || vocab.pre == "qwen35")
    spec.normalizer = Normalizer({{NormalizeStep::Kind::Nfc, "", ""}});

  spec.tokens.reserve(vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    auto token = read_token(vocab.tokens[i], vocab.token_types[i], i);
    if (!token) return token.error();
    spec.tokens.push_back(std::move(*token));
  }
  return read_merges(vocab, by_text, spec.merges);
}

Result<void> read_ids(const GgufVocab& vocab, BpeSpec& spec) {
  const size_t n = vocab.tokens.size();
  const std::pair<const char*, std::optional<int64_t>> ids[] = {
      {"bos", vocab.bos}, {"eos", vocab.eos}, {"eot", vocab.eot}};
  for (const auto& [name, id] : ids) {
    if (id && (*id < 0 || static_cast<uint64_t>(*id) >= n))
      return bad(
          fmt::format("tokenizer.ggml.{}_token_id is {}, but there are {} tokens", name, *id, n));
  }
  if (vocab.bos) spec.bos = static_cast<TokenId>(*vocab.bos);
  if (vocab.eos) spec.end_ids.push_back(static_cast<TokenId>(*vocab.eos));
  if (vocab.eot && vocab.eot != vocab.eos) spec.end_ids.push_back(static_cast<TokenId>(*vocab.eot));
  if (vocab.adds_bos && !vocab.bos)
    return bad("tokenizer.ggml.add_bos_token is true, but there is no tokenizer.ggml.bos_token_id");
  spec.adds_bos = vocab.adds_bos;
  return {};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_bpe(const GgufVocab& vocab) {
  const bool byte_level = vocab.model == "gpt2";
  if (!byte_level && vocab.model != "llama")
    return Error{ErrorCode::Unsupported,
                 fmt::format("tokenizer.ggml.model is \"{}\"; known are gpt2 (byte-level BPE) and "
                             "llama (SentencePiece BPE)",
                             shown(vocab.model))};
  const size_t n = vocab.tokens.size();
  if (n == 0 || n > INT32_MAX) return bad(fmt::format("tokenizer.ggml.tokens has {} entries", n));
  if (vocab.token_types.size() != n)
    return bad(fmt::format("tokenizer.ggml.token_type has {} entries for {} tokens",
                           vocab.token_types.size(), n));
  TokenIndex by_text(n);
  for (size_t i = 0; i < n; ++i) {
    if (!by_text.insert(vocab.tokens[i], static_cast<TokenId>(i)))
      return bad(fmt::format("tokenizer.ggml.tokens[{}] and [{}] are both \"{}\"",
                             by_text.find(vocab.tokens[i]), i, shown(vocab.tokens[i])));
  }
  BpeSpec spec;
  auto read =
      byte_level ? read_byte_level(vocab, by_text, spec) : read_scored_vocab(vocab, by_text, spec);
  if (!read) return read.error();
  std::set<std::string> barred_texts;
  for (size_t i = 0; i < n; ++i) {
    const TokenKind kind = spec.tokens[i].kind;
    if (kind != TokenKind::Added && kind != TokenKind::Special) continue;
    AddedToken token{.text = std::string(vocab.tokens[i]),
                     .id = static_cast<TokenId>(i),
                     .is_special = kind == TokenKind::Special};
    const bool normalized = !byte_level && kind == TokenKind::Added;
    if (normalized) {
      token.text = barred(token.text);
      if (!barred_texts.insert(token.text).second)
        return bad(fmt::format("tokenizer.ggml.tokens has two user-defined tokens \"{}\"",
                               shown(token.text)));
    }
    (normalized ? spec.added_normalized : spec.added).push_back(std::move(token));
  }
  if (auto ids = read_ids(vocab, spec); !ids) return ids.error();
  auto made = make_bpe(std::move(spec));
  if (!made) return bad("tokenizer.ggml.merges: " + made.error().message);
  return made;
}

}  // namespace paceline

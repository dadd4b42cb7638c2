// What the readers of BPE files fill in, and the tokenizer made of it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/bpe_model.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/token_index.h"
#include "text/tokenizer.h"

namespace paceline {

enum class TokenKind : uint8_t {
  Unused,   // an id that no text leads to
  Normal,   // reached by merging
  Added,    // cut from the text wherever it is written
  Special,  // the same where special tokens are read; dropped from decoded text
};

struct BpeToken {
  std::string bytes;  // what it decodes to
  TokenKind kind = TokenKind::Unused;
};

// U+2581, which stands for a space in the vocabularies of SentencePiece.
inline constexpr std::string_view kSpaceBar = "\u2581";

// The pre-tokenizer Metaspace: spaces become bars, and a bar may come in front.
struct BarSpaces {
  enum class Prefix { Never, First, Always };  // First: only where a text begins
  Prefix prefix = Prefix::Always;
};

struct BpeSpec {
  std::vector<BpeToken> tokens;  // by id
  std::vector<Merge> merges;
  // Cut from the text as it is, and then from what is normalized; each kind Added or Special, the
  // text is what is looked for.
  std::vector<AddedToken> added, added_normalized;
  Normalizer normalizer;
  std::optional<BarSpaces> bar_spaces;
  std::vector<CutStep> steps;
  std::string description;
  // Where the vocabulary names characters, not bytes: its tokens of one character, and those of the
  // bytes of all other characters: all 256 or none.
  CharTokens char_tokens;
  std::optional<std::array<TokenId, 256>> byte_fallback;
  bool takes_whole_pieces = false;  // a piece that is a token is not split (ignore_merges)
  TokenId unknown = -1;
  bool fuse_unknown = false;
  int spaces_off_front = 0;  // as many spaces does decoding drop at the start of a text
  std::optional<TokenId> bos;
  bool adds_bos = false;
  std::vector<TokenId> end_ids;
};

Result<std::unique_ptr<Tokenizer>> make_bpe(BpeSpec spec);

// The merge that a file lists as number `index`, its rank; BadFormat when one of the three is no
// token.
Result<Merge> find_merge(const TokenIndex& tokens, std::string_view left, std::string_view right,
                         size_t index);

// What a token of a vocabulary of characters decodes to: bars become spaces, and where
// `byte_tokens`, "<0x0A>" and the like are bytes.
std::string decoded_piece(std::string_view written, bool byte_tokens);
// A text with bars for spaces.
std::string barred(std::string_view text);
// The byte that "<0x0A>" names, in upper case; nothing for any other text.
std::optional<uint8_t> byte_of_token(std::string_view written);
// The code point of a text that is one character.
std::optional<uint32_t> only_character(std::string_view text);

// `text` for an error sentence: cut to a length that fits, without line ends and controls.
std::string shown(std::string_view text);

}  // namespace paceline

// What both readers of BPE files fill in, and the tokenizer made of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/pretokenizer.h"
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
  bool after_added = false;  // Added or Special: looked for in what the others have left over
};

struct BpeSpec {
  std::vector<BpeToken> tokens;  // by id
  std::vector<Merge> merges;
  std::vector<CutStep> steps;
  std::string steps_name;
  bool takes_whole_pieces = false;  // a piece that is a token is not split (ignore_merges)
  TokenId unknown = -1;
  bool fuse_unknown = false;
  std::optional<TokenId> bos;
  bool adds_bos = false;
  std::vector<TokenId> end_ids;
};

Result<std::unique_ptr<Tokenizer>> make_bpe(BpeSpec spec);

// Tokens by the text by which a file names them, while the file is read.
using TokensByText = std::unordered_map<std::string_view, TokenId>;

// The merge that a file lists as number `index`; BadFormat when one of the three is no token.
Result<Merge> find_merge(const TokensByText& tokens, std::string_view left, std::string_view right,
                         size_t index);

// `text` for an error sentence: cut to a length that fits, without line ends and controls.
std::string shown(std::string_view text);

}  // namespace paceline

// Text to token ids and back.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "text/added_tokens.h"

namespace paceline {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual int vocab_size() const = 0;
  // "byte-level BPE, smollm" and the like, for inspect.
  virtual std::string description() const = 0;

  // Appends the ids of `text`. With read_specials, special tokens written out in the text become
  // their ids; without, they are plain text, which is what text from a user must be. Adds no BOS.
  // Invalid UTF-8: each maximal invalid part becomes U+FFFD first. `continues`: this is no start of
  // a text but stands behind a special token; some vocabularies put a space in front of a start
  // only.
  virtual void encode(std::string_view text, bool read_specials, std::vector<TokenId>& ids,
                      bool continues = false) const = 0;
  // The bytes of one token; they need not be whole UTF-8 characters. Special tokens give their
  // written form, unknown ids nothing.
  virtual std::string_view bytes(TokenId id) const = 0;
  virtual bool is_special(TokenId id) const = 0;
  virtual const AddedTokens& specials() const = 0;
  // As many spaces, where there are any, does decoding drop at the start of a text: encoding has
  // put them there.
  virtual int spaces_off_front() const = 0;

  virtual std::optional<TokenId> bos() const = 0;
  virtual bool adds_bos() const = 0;  // whether raw text is to be preceded by it
  // End ids that the tokenizer's own file names (EOS, end of turn).
  virtual std::span<const TokenId> end_ids() const = 0;
};

// Turns tokens into text as they come, never cutting a UTF-8 character: bytes of an unfinished one
// are held back. Bytes that can no longer become a character turn into U+FFFD, one for each maximal
// invalid part (the rule of Unicode section 3.9). Special tokens are dropped, or, with
// keep_specials, written; and the spaces that the tokenizer drops at the start are dropped.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool keep_specials = false)
      : tokenizer_(&tokenizer),
        keep_specials_(keep_specials),
        spaces_to_drop_(tokenizer.spaces_off_front()) {}
  // Appends to `text` what has become certain.
  void add(TokenId id, std::string& text);
  // The end: what is still held back turns into U+FFFD.
  void finish(std::string& text);

 private:
  const Tokenizer* tokenizer_;
  bool keep_specials_;
  int spaces_to_drop_;
  std::string pending_;
};

std::string decode(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                   bool keep_specials = false);

}  // namespace paceline

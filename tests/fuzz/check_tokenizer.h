// What the fuzzers of tokenizers ask of every one that is made.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace paceline {

// An error says why; a tokenizer encodes `input` to ids of its own and decodes them to text.
inline void check_tokenizer(const Result<std::unique_ptr<Tokenizer>>& tokenizer,
                            std::string_view input) {
  if (!tokenizer) {
    check(!tokenizer.error().message.empty(), "an error without a sentence");
    return;
  }
  std::vector<TokenId> ids;
  for (bool read_specials : {false, true}) (*tokenizer)->encode(input, read_specials, ids);
  for (TokenId id : ids)
    check(id >= 0 && id < (*tokenizer)->vocab_size(), "an id lies outside the vocabulary");
  for (bool keep_specials : {false, true})
    check(is_valid_utf8(decode(**tokenizer, ids, keep_specials)),
          "decoded text is not valid UTF-8");
}

}  // namespace paceline

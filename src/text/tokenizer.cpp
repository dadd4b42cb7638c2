#include "text/tokenizer.h"

#include "text/utf8.h"

namespace paceline {

void StreamDecoder::add(TokenId id, std::string& text) {
  if (tokenizer_->is_special(id)) return;
  pending_ += tokenizer_->bytes(id);
  size_t pos = 0;
  while (pos < pending_.size()) {
    const Utf8Char c = read_utf8(pending_, pos);
    if (c.kind == Utf8Kind::Incomplete) break;
    const auto length = static_cast<size_t>(c.length);
    if (c.kind == Utf8Kind::Valid)
      text.append(pending_, pos, length);
    else
      text += kReplacement;
    pos += length;
  }
  pending_.erase(0, pos);
}

void StreamDecoder::finish(std::string& text) {
  if (!pending_.empty()) text += kReplacement;  // one unfinished character is one maximal part
  pending_.clear();
}

std::string decode(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::string text;
  StreamDecoder decoder(tokenizer);
  for (TokenId id : ids) decoder.add(id, text);
  decoder.finish(text);
  return text;
}

}  // namespace paceline

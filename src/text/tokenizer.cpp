#include "text/tokenizer.h"

#include "text/utf8.h"

namespace paceline {

void StreamDecoder::add(TokenId id, std::string& text) {
  if (!keep_specials_ && tokenizer_->is_special(id)) return;
  std::string_view bytes = tokenizer_->bytes(id);
  while (spaces_to_drop_ > 0 && !bytes.empty()) {
    if (bytes.front() == ' ')
      bytes.remove_prefix(1);
    else
      spaces_to_drop_ = 1;  // the text has begun
    --spaces_to_drop_;
  }
  pending_ += bytes;
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

std::string decode(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool keep_specials) {
  std::string text;
  StreamDecoder decoder(tokenizer, keep_specials);
  for (TokenId id : ids) decoder.add(id, text);
  decoder.finish(text);
  return text;
}

}  // namespace paceline

// Any bytes as tokenizer.json; a tokenizer that comes of it encodes the same bytes.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "text/bpe.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paceline;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = make_bpe(input, "");
  if (!tokenizer) return 0;
  std::vector<TokenId> ids;
  for (bool read_specials : {false, true}) (*tokenizer)->encode(input, read_specials, ids);
  for (TokenId id : ids)
    check(id >= 0 && id < (*tokenizer)->vocab_size(), "an id lies outside the vocabulary");
  check(is_valid_utf8(decode(**tokenizer, ids)), "decoded text is not valid UTF-8");
  return 0;
}

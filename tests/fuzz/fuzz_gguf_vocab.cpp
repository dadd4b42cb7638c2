// Any bytes as the vocabulary of a GGUF file, of either kind: an error, or a tokenizer that encodes
// the same bytes.
//   kind and flags, 1 byte | tokens: type, 1 byte; score, 1 byte; text up to the next 0xFE | 0xFF |
//   merges, likewise up to 0xFE each
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tests/fuzz/check_tokenizer.h"
#include "text/bpe.h"

namespace {

std::string_view take_text(std::string_view& rest) {
  const size_t end = std::min(rest.find('\xFE'), rest.size());
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return text;
}

}  // namespace

// libFuzzer's name. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paceline;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const auto flags = static_cast<uint8_t>(input[0]);
  constexpr std::string_view kPres[] = {"gpt-2", "smollm", "llama-bpe",
                                        "qwen2", "qwen35", "gpt-4o"};
  std::vector<std::string_view> tokens, merges;
  std::vector<int32_t> types;
  std::vector<double> scores;
  std::string_view rest = input.substr(1);
  while (rest.size() >= 2 && rest[0] != '\xFF') {
    types.push_back(static_cast<uint8_t>(rest[0]) % 8);
    scores.push_back(static_cast<int8_t>(rest[1]));
    rest.remove_prefix(2);
    tokens.push_back(take_text(rest));
  }
  if (!rest.empty()) rest.remove_prefix(1);
  while (!rest.empty()) merges.push_back(take_text(rest));
  const auto tokenizer = make_bpe(GgufVocab{.model = flags & 1 ? "llama" : "gpt2",
                                            .tokens = tokens,
                                            .merges = merges,
                                            .scores = scores,
                                            .token_types = types,
                                            .pre = kPres[flags / 8 % std::size(kPres)],
                                            .bos = {},
                                            .eos = {},
                                            .eot = {},
                                            .adds_space = (flags & 2) != 0});
  check_tokenizer(tokenizer, input);
  return 0;
}

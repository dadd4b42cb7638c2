// Any bytes as tokenizer.json, and what follows a NUL as tokenizer_config.json; a tokenizer that
// comes of them encodes the same bytes. The scan of the long lists agrees with the parser.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.h"
#include "tests/fuzz/check_tokenizer.h"
#include "text/bpe.h"
#include "text/json_scan.h"
#include "text/normalizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

using namespace paceline;
using Json = nlohmann::json;

// What the parser takes, the scan takes whole, and its strings are the same.
void compare_scan(std::string_view input) {
  const Json parsed = Json::parse(input.begin(), input.end(), nullptr, false);
  if (parsed.is_discarded() || input.starts_with("\xEF\xBB\xBF")) return;  // it skips a mark
  JsonScan scan(input);
  (void)scan.value();
  check(!scan.failed() && scan.at_end(), "the scan refuses what the parser takes");
  if (parsed.is_string()) {
    JsonScan text(input);
    check(text.text() == parsed.get<std::string>(), "the scan reads another text");
  }
  if (!parsed.is_object()) return;
  JsonScan members(input);
  members.enter('{');
  while (members.next('}')) {
    check(parsed.contains(std::string(members.key())), "the scan reads another key");
    (void)members.value();
  }
  check(!members.failed() && members.at_end(), "the scan refuses an object that the parser takes");
}

}  // namespace

// libFuzzer's name. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(input.find('\0'), input.size());
  const std::string_view config = input.substr(std::min(cut + 1, input.size()));
  compare_scan(input.substr(0, cut));
  const std::string text = replace_invalid_utf8(input);
  std::string composed;
  std::string twice;
  append_nfc(text, composed);
  append_nfc(composed, twice);
  check(composed == twice && is_valid_utf8(composed), "what is composed is composed again");

  const auto tokenizer = make_bpe(input.substr(0, cut), config);
  check_tokenizer(tokenizer, input);
  return 0;
}

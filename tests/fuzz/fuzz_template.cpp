// Any bytes as a chat template, and a part of them as what a user writes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "text/chat_template.h"
#include "text/utf8.h"

// libFuzzer's name. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace paceline;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string content(cut == std::string_view::npos ? "a b" : input.substr(cut + 1));
  const auto chat = ChatTemplate::parse(input.substr(0, cut), "<s>", "</s>");
  if (!chat) return 0;
  const ChatMessage messages[] = {{"system", "s"}, {"user", content}, {"assistant", content}};
  const auto text = chat->render(messages, true);
  check(!text || is_valid_utf8(*text), "a rendered template is not valid UTF-8");
  return 0;
}

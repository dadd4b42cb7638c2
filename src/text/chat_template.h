// A model's chat template: a conversation to the text that the model was trained on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "text/tokenizer.h"

namespace paceline {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// A small strict interpreter of the Jinja subset that chat templates use. What it does not know it
// refuses, at parse time where possible, by name. No template can make it hang, fill memory or
// overflow the stack.
//
// Variables of a template: messages (each with role and content), add_generation_prompt, bos_token,
// eos_token; tools and documents are none, as transformers' renderer has them. Invalid UTF-8 in a
// message becomes U+FFFD by the tokenizer's rule.
class ChatTemplate {
 public:
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // bos and eos: what the variables bos_token and eos_token hold.
  static Result<ChatTemplate> parse(std::string_view source, std::string bos, std::string eos);

  // The text, with the prompt for the next answer behind it when add_generation_prompt. BadUsage
  // with the template's own words for what it raises.
  Result<std::string> render(std::span<const ChatMessage> messages,
                             bool add_generation_prompt) const;
  // Ids of the same text, special tokens of the template read as such while text from the messages
  // stays plain. Pieces between two special tokens are encoded as one, since encoding is not
  // concatenative. Where the tokenizer adds a BOS and the template wrote none, it comes first:
  // there is exactly one.
  Result<std::vector<TokenId>> encode(std::span<const ChatMessage> messages,
                                      bool add_generation_prompt, const Tokenizer& tokenizer) const;

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace paceline

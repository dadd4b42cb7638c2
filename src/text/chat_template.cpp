#include "text/chat_template.h"

#include <utility>

#include "text/jinja_eval.h"
#include "text/jinja_parser.h"
#include "text/utf8.h"

namespace paceline {

struct ChatTemplate::Program {
  jinja::Body body;
  std::string bos, eos;
};

namespace {

using jinja::Dict;
using jinja::List;
using jinja::Text;

// The variables that a template sees: those of transformers' renderer for a chat without tools.
Dict variables(std::span<const ChatMessage> messages, bool add_generation_prompt,
               const std::string& bos, const std::string& eos) {
  auto list = std::make_shared<List>();
  list->depth = 3;  // a list of mappings
  for (const ChatMessage& message : messages) {
    auto entry = std::make_shared<Dict>();
    entry->set("role", Text(replace_invalid_utf8(message.role), /*user=*/true));
    entry->set("content", Text(replace_invalid_utf8(message.content), /*user=*/true));
    list->items.emplace_back(std::shared_ptr<const Dict>(std::move(entry)));
  }
  Dict globals;
  globals.set("messages", std::shared_ptr<const List>(std::move(list)));
  globals.set("add_generation_prompt", add_generation_prompt);
  globals.set("bos_token", Text(bos));
  globals.set("eos_token", Text(eos));
  globals.set("tools", jinja::None{});
  globals.set("documents", jinja::None{});
  return globals;
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program) : program_(std::move(program)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string bos,
                                         std::string eos) {
  if (!is_valid_utf8(source))
    return Error{ErrorCode::BadFormat, "the chat template is not valid UTF-8"};
  auto body = jinja::parse(source);
  if (!body) return body.error();
  auto program = std::make_unique<Program>();
  program->body = std::move(*body);
  program->bos = is_valid_utf8(bos) ? std::move(bos) : replace_invalid_utf8(bos);
  program->eos = is_valid_utf8(eos) ? std::move(eos) : replace_invalid_utf8(eos);
  return ChatTemplate(std::move(program));
}

Result<std::string> ChatTemplate::render(std::span<const ChatMessage> messages,
                                         bool add_generation_prompt) const {
  auto text = jinja::render(
      program_->body, variables(messages, add_generation_prompt, program_->bos, program_->eos));
  if (!text) return text.error();
  return std::move(text->bytes);
}

Result<std::vector<TokenId>> ChatTemplate::encode(std::span<const ChatMessage> messages,
                                                  bool add_generation_prompt,
                                                  const Tokenizer& tokenizer) const {
  auto rendered = jinja::render(
      program_->body, variables(messages, add_generation_prompt, program_->bos, program_->eos));
  if (!rendered) return rendered.error();
  const std::string_view text = rendered->bytes;
  const std::string_view from_user = rendered->from_user;
  const AddedTokens& specials = tokenizer.specials();

  std::vector<TokenId> ids;
  const auto encode_piece = [&](size_t from, size_t to) {
    tokenizer.encode(text.substr(from, to - from), /*read_specials=*/false, ids,
                     /*continues=*/from > 0);
  };
  size_t plain = 0;  // where the piece since the last special token starts
  size_t pos = 0;
  while (pos < text.size()) {
    // A special token counts where the template alone wrote every byte of it.
    const size_t begin = std::min(from_user.find('\0', pos), text.size());
    const size_t end = std::min(from_user.find('\1', begin), text.size());
    for (pos = begin; pos < end;) {
      const auto match = specials.find_within(text, pos, end, plain);
      if (!match) break;
      if (match->begin > plain) encode_piece(plain, match->begin);
      ids.push_back(match->id);
      plain = match->end;
      pos = match->next;
    }
    pos = end;
  }
  encode_piece(plain, text.size());
  if (tokenizer.adds_bos() && (ids.empty() || ids[0] != *tokenizer.bos()))
    ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

}  // namespace paceline

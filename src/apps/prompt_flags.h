// Where prompts come from: the command line, a file, standard input, or ids.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/flags.h"
#include "engine/engine.h"

namespace paceline::apps {

// A prompt as it was given.
struct PromptSource {
  std::string id;                     // the file's own, else the line number
  std::string category;               // "" when there is none
  std::string where;                  // "prompts.jsonl line 3", for messages
  std::string text;                   // either this,
  std::vector<ChatMessage> messages;  // or this,
  std::vector<TokenId> ids;           // or this
};

// A prompt as the trunk reads it.
struct Prompt {
  std::string id;
  std::string category;
  std::vector<TokenId> ids;
};

// The prompts of a text in the JSON-lines form or with one prompt a line. Blank lines are skipped
// but counted; a line end may be CR LF; a byte-order mark is dropped. name: for messages.
Result<std::vector<PromptSource>> parse_prompts(std::string_view text, std::string_view name,
                                                bool json_lines);

struct PromptFlags {
  std::optional<std::string> prompt;
  std::optional<std::string> file;
  std::optional<std::vector<TokenId>> ids;
  bool raw = false;
  std::optional<std::string> system;

  void add(Flags& flags);
  bool any() const { return prompt || file || ids; }
  // The file that is read, if any.
  std::vector<std::string> files() const;
  // What was asked for, read and checked, before a model is loaded.
  // sha256: gets the hash of the file's bytes, or of --prompt's text.
  Result<std::vector<PromptSource>> read(std::string* sha256 = nullptr) const;
  // The ids of each; every one fits into the context.
  Result<std::vector<Prompt>> encode(const std::vector<PromptSource>& sources,
                                     const Engine& engine) const;
};

}  // namespace paceline::apps

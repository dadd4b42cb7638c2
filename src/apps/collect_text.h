// Given text, cut into pieces and recorded with the hiddens that the trunk has in it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/collect_answers.h"

namespace paceline::apps {

struct TextSource {
  std::string id;
  std::string category;
  std::string where;  // "text.jsonl line 3", for messages
  std::string text;
};

// The texts of a file: of a .jsonl one a line, as `text` with optional `id` and `category`; any
// other file is one text, called like the file.
Result<std::vector<TextSource>> read_texts(const std::string& path, std::string* sha256);

// The pieces: at most `piece` tokens each, the last of a text at least two. A piece begins with BOS
// where the tokenizer wants one. Ids of texts that are cut get a number, "notes#3".
Result<std::vector<Prompt>> cut_texts(const Engine& engine, const std::vector<TextSource>& texts,
                                      int piece);

Result<CollectProgress> collect_text(const Engine& engine, const std::vector<Prompt>& pieces,
                                     const CollectAnswers& options, DumpWriter& dump);

}  // namespace paceline::apps

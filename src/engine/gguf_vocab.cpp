#include "engine/gguf_vocab.h"

#include <utility>

namespace paceline {

GgufVocab GgufLists::vocab() const {
  GgufVocab vocab = settings;
  vocab.tokens = tokens;
  vocab.merges = merges;
  vocab.scores = scores;
  vocab.token_types = token_types;
  return vocab;
}

Result<std::optional<GgufLists>> read_gguf_vocab(const Metadata& metadata) {
  const auto model = metadata.text("tokenizer.ggml.model");
  if (!model) return std::optional<GgufLists>();
  auto tokens = metadata.texts("tokenizer.ggml.tokens");
  if (!tokens) return Error{ErrorCode::BadFormat, "no list of texts tokenizer.ggml.tokens"};
  auto merges = metadata.texts("tokenizer.ggml.merges");
  if (*model == "gpt2" && !merges) {
    return Error{ErrorCode::BadFormat, "no list of texts tokenizer.ggml.merges"};
  }
  const auto types = metadata.integers("tokenizer.ggml.token_type");
  if (!types) return Error{ErrorCode::BadFormat, "no list of integers tokenizer.ggml.token_type"};
  GgufLists lists;
  lists.tokens = *std::move(tokens);
  lists.merges = std::move(merges).value_or(std::vector<std::string_view>());
  lists.scores = metadata.numbers("tokenizer.ggml.scores").value_or(std::vector<double>());
  lists.token_types.reserve(types->size());
  for (const int64_t type : *types) {  // an odd type is refused by name in make_bpe
    lists.token_types.push_back(type == static_cast<int32_t>(type) ? static_cast<int32_t>(type)
                                                                   : -1);
  }
  lists.settings.model = *model;
  lists.settings.pre = metadata.text("tokenizer.ggml.pre").value_or(std::string_view());
  lists.settings.bos = metadata.integer("tokenizer.ggml.bos_token_id");
  lists.settings.eos = metadata.integer("tokenizer.ggml.eos_token_id");
  lists.settings.eot = metadata.integer("tokenizer.ggml.eot_token_id");
  lists.settings.adds_bos = metadata.boolean("tokenizer.ggml.add_bos_token").value_or(false);
  lists.settings.adds_space = metadata.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  return std::optional<GgufLists>(std::move(lists));
}

}  // namespace paceline

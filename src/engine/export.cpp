#include "engine/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/threads.h"
#include "engine/end_ids.h"
#include "engine/gguf_vocab.h"
#include "engine/open_text.h"
#include "io/checkpoint.h"
#include "io/output_file.h"
#include "io/quantize.h"
#include "io/shards.h"
#include "io/shown.h"
#include "models/huggingface.h"
#include "text/tokenizer_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::vector<float> values_of(const FolderTensor& tensor) {
  const auto n = static_cast<int64_t>(tensor.source->elements());
  std::vector<float> stored(static_cast<size_t>(n));
  dequantize(*tensor.source, 0, stored);
  std::vector<float> values(stored.size());
  for (int64_t i = 0; i < n; ++i) {
    const float x = stored[static_cast<size_t>(source_row(i, tensor.order, tensor.head_dim))];
    values[static_cast<size_t>(i)] = tensor.less_one ? x - 1.0f : x;
  }
  return values;
}

// Whether bf16 holds the values. A factor 1 + w counts as held where rounding w does not change it.
bool fits_bf16(const FolderTensor& tensor) {
  const std::vector<float> values = values_of(tensor);
  std::vector<uint16_t> rounded(values.size());
  quantize(DType::BF16, values, std::as_writable_bytes(std::span(rounded)));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = uint32_t{rounded[i]} << 16;
    const float back = std::bit_cast<float>(bits);
    const bool same = tensor.less_one ? 1.0f + back == 1.0f + values[i]
                                      : bits == std::bit_cast<uint32_t>(values[i]);
    if (!same) return false;
  }
  return true;
}

DType type_in_folder(const FolderTensor& tensor) {
  if (tensor.source->shape.size() == 2) return DType::BF16;
  return fits_bf16(tensor) ? DType::BF16 : DType::F32;
}

// Fills in the rows that the writer asks for, all threads at once.
class RowSource {
 public:
  RowSource(const ExportOptions& options, const std::vector<FolderTensor>& tensors,
            std::span<const TensorSpec> specs)
      : options_(options), tensors_(tensors), specs_(specs), pool_(options.threads) {
    for (const TensorSpec& spec : specs) bytes_ += spec.rows() * spec.row_bytes();
  }
  int64_t bytes() const { return bytes_; }

  Result<void> fill(size_t index, int64_t first_row, std::span<std::byte> rows) {
    if (options_.stop && options_.stop())
      return Error{ErrorCode::Interrupted, "interrupted; nothing was written"};
    const FolderTensor& tensor = tensors_[index];
    const TensorSpec& spec = specs_[index];
    if (spec.shape.size() != 2) {
      quantize(spec.type, values_of(tensor), rows);
    } else {
      const int64_t row_bytes = spec.row_bytes();
      const int64_t n_in = spec.shape.back();
      pool_.split(
          static_cast<int64_t>(rows.size()) / row_bytes, 1, [&](int64_t begin, int64_t end) {
            std::vector<float> values(static_cast<size_t>(n_in));
            for (int64_t i = begin; i < end; ++i) {
              const int64_t from = source_row(first_row + i, tensor.order, tensor.head_dim);
              dequantize(*tensor.source, from * n_in, values);
              quantize(
                  spec.type, values,
                  rows.subspan(static_cast<size_t>(i * row_bytes), static_cast<size_t>(row_bytes)));
            }
          });
    }
    done_ += static_cast<int64_t>(rows.size());
    if (options_.progress)
      options_.progress(static_cast<double>(done_) / static_cast<double>(bytes_));
    return {};
  }

 private:
  const ExportOptions& options_;
  const std::vector<FolderTensor>& tensors_;
  std::span<const TensorSpec> specs_;
  ThreadPool pool_;
  int64_t bytes_ = 0;
  int64_t done_ = 0;
};

// What the folder will hold: tensors, and texts by the names of their files.
struct Plan {
  std::string family;
  FolderContents contents;
  std::map<std::string, std::string> texts;
};

Result<Plan> plan_gguf(const Checkpoint& source) {
  const auto config = read_config(source);
  if (!config) return config.error();
  auto contents = folder_contents(source, *config);
  if (!contents) return contents.error();
  const Metadata& metadata = *source.metadata();
  SpecialIds ids{.bos = metadata.integer("tokenizer.ggml.bos_token_id"),
                 .pad = metadata.integer("tokenizer.ggml.padding_token_id"),
                 .ends = {}};
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    const auto id = metadata.integer(key);
    if (id && std::ranges::find(ids.ends, *id) == ids.ends.end()) ids.ends.push_back(*id);
  }
  auto config_json = folder_config(source, *config, *contents, ids);
  if (!config_json) return config_json.error();
  Plan plan{config->family, std::move(*contents), {}};
  plan.texts["config.json"] = std::move(*config_json);
  plan.texts["generation_config.json"] = folder_generation_config(ids);

  const auto lists = read_gguf_vocab(metadata);
  if (!lists)
    return Error{lists.error().code, source.path().string() + ": " + lists.error().message};
  if (!*lists) return plan;
  const TokenizerSettings settings{
      .pad = ids.pad,
      .chat_template = metadata.text("tokenizer.chat_template").value_or(std::string_view()),
      .context_length = config->context_length};
  auto files = tokenizer_files((*lists)->vocab(), settings);
  if (!files)
    return Error{files.error().code, source.path().string() + ": " + files.error().message};
  plan.texts["tokenizer.json"] = std::move(files->tokenizer_json);
  plan.texts["tokenizer_config.json"] = std::move(files->tokenizer_config_json);
  plan.texts["special_tokens_map.json"] = std::move(files->special_tokens_map_json);
  return plan;
}

// config.json with bfloat16 as its type, wherever it names one.
std::string in_bf16(const std::string& config_json) {
  auto json = nlohmann::ordered_json::parse(config_json);
  const auto name_type = [](nlohmann::ordered_json& settings) {
    for (const char* key : {"dtype", "torch_dtype"})
      if (settings.contains(key)) settings[key] = "bfloat16";
  };
  name_type(json);
  if (!json.contains("dtype")) json["torch_dtype"] = "bfloat16";
  if (json.contains("text_config")) name_type(json["text_config"]);
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<Plan> plan_folder(const Checkpoint& source) {
  const auto config = read_config(source);
  if (!config) return config.error();
  Plan plan{config->family, {}, {}};
  for (const Tensor& tensor : source.tensors())
    plan.contents.tensors.push_back({.name = tensor.name, .source = &tensor});
  plan.texts["config.json"] = in_bf16(source.config_json());
  const std::pair<const char*, const std::string&> texts[] = {
      {"generation_config.json", source.generation_config_json()},
      {"tokenizer.json", source.tokenizer_json()},
      {"tokenizer_config.json", source.tokenizer_config_json()},
      {"chat_template.jinja", source.chat_template_jinja()}};
  for (const auto& [name, text] : texts)
    if (!text.empty()) plan.texts[name] = text;
  return plan;
}

// Words, blanks, digits, lines, letters with marks, signs of other scripts, code and markup. No
// U+2581, which beside spaces the two kinds of files read differently (docs/tokenizers.md).
constexpr std::string_view kTrialText =
    "The  riders' wheels turn 1234567 times;\n\n\tdon't stop: "
    "café naïve Ünïcode ſ’ß —\r\n"
    "东京 서울 русский العربية "
    "हिन्दी ไทย 🚴‍♀️🚴 "
    "if (x[i] >= 0x1F) { return \"%s\"; }    # end\n"
    "<|im_start|>user\n<s> [INST] <start_of_turn> </s>  e\u0301a\u0300";

// A tokenizer that gave other ids than the source's must not be written.
Result<void> compare_tokenizers(const Checkpoint& source, const Checkpoint& folder) {
  const auto before = open_tokenizer(source);
  if (!before) return before.error();
  const auto after = open_tokenizer(folder);
  if (!after) return after.error();
  if (*before == nullptr || *after == nullptr) return {};
  bool same = (*before)->adds_bos() == (*after)->adds_bos() && (*before)->bos() == (*after)->bos();
  for (const bool read_specials : {false, true}) {
    std::vector<TokenId> ids[2];
    (*before)->encode(kTrialText, read_specials, ids[0]);
    (*after)->encode(kTrialText, read_specials, ids[1]);
    same = same && ids[0] == ids[1] &&
           decode(**before, ids[0], read_specials) == decode(**after, ids[1], read_specials);
  }
  if (same) return {};
  return Error{ErrorCode::Unsupported,
               shown_path(source.path()) +
                   ": its tokenizer cannot be written as a tokenizer.json that gives the same ids"};
}

}  // namespace

Result<ExportSummary> export_model(const fs::path& model, const ExportOptions& options) {
  const auto source = Checkpoint::open(model);
  if (!source) return source.error();
  const auto plan = source->metadata() != nullptr ? plan_gguf(*source) : plan_folder(*source);
  if (!plan) return plan.error();
  std::vector<TensorSpec> specs;
  ExportSummary summary;
  for (const FolderTensor& tensor : plan->contents.tensors) {
    specs.push_back({tensor.name, type_in_folder(tensor), tensor.source->shape});
    summary.parameters += tensor.source->elements();
  }
  RowSource rows(options, plan->contents.tensors, specs);

  auto folder = OutputFolder::create(options.out, "--out");
  if (!folder) return folder.error();
  uint64_t text_bytes = 0;
  for (const auto& [_, text] : plan->texts) text_bytes += text.size();
  constexpr uint64_t kForNames = uint64_t{1} << 20;  // headers, the index, the folder itself
  if (auto room = check_room(folder->temporary(),
                             static_cast<uint64_t>(rows.bytes()) + text_bytes + kForNames);
      !room)
    return room.error();
  for (const auto& [name, text] : plan->texts) {
    if (auto done = write_text_file(folder->temporary() / name, text); !done) return done.error();
    summary.files.push_back((folder->path() / name).string());
  }
  const auto shards =
      write_shards(folder->temporary(), specs, source->file_metadata(), options.shard_bytes,
                   [&](size_t tensor, int64_t first, std::span<std::byte> out) {
                     return rows.fill(tensor, first, out);
                   });
  if (!shards) return shards.error();
  for (const std::string& name : *shards) summary.files.push_back((folder->path() / name).string());

  const auto written = Checkpoint::open(folder->temporary());
  if (!written) return written.error();
  if (auto same = compare_tokenizers(*source, *written); !same) return same.error();
  if (auto done = folder->commit(); !done) return done.error();
  summary.family = plan->family;
  summary.model_sha256 = source->trunk_sha256();
  summary.left_out = plan->contents.left_out;
  return summary;
}

}  // namespace paceline

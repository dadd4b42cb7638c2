// paceline inspect: what a checkpoint holds and what will run.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/json_file.h"
#include "apps/model_flags.h"
#include "apps/say.h"
#include "apps/values.h"
#include "engine/head_search.h"
#include "io/checkpoint.h"
#include "io/convert.h"
#include "io/safetensors_reader.h"
#include "io/shown.h"
#include "io/weight_file.h"
#include "measure/head_use.h"

namespace paceline::apps {
namespace {

std::string with_separators(int64_t n) {
  std::string digits = fmt::format("{}", n);
  for (auto place = static_cast<ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3) {
    digits.insert(static_cast<size_t>(place), ",");
  }
  return digits;
}

Json tokenizer_json(const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return nullptr;
  const auto bos = tokenizer->bos();
  return Json{{"description", tokenizer->description()},
              {"vocab_size", tokenizer->vocab_size()},
              {"bos", bos ? Json(*bos) : Json(nullptr)},
              {"adds_bos", tokenizer->adds_bos()}};
}

// Matrices whose type changes at load: all of another type with --weights bf16 or f32, else those
// whose type has no kernels. Not "exact" means that values are rounded (docs/formats.md: how much).
Json converted_json(const Checkpoint& checkpoint, const ModelFlags& flags) {
  const auto target = [&](DType stored) {
    if (flags.weights == 1) return DType::BF16;
    return flags.weights == 2 ? DType::F32 : streamed_as(stored);
  };
  std::map<DType, int> counts;
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (tensor.shape.size() == 2 && tensor.type != target(tensor.type)) ++counts[tensor.type];
  }
  Json list = Json::array();
  for (const auto& [type, n] : counts) {
    const DType to = target(type);
    list.push_back(Json{{"from", to_string(type)},
                        {"to", to_string(to)},
                        {"exact", converts_exactly(type, to)},
                        {"tensors", n}});
  }
  return list;
}

Json types_json(const Checkpoint& checkpoint) {
  std::map<std::string, int> counts;
  for (const Tensor& tensor : checkpoint.tensors()) ++counts[to_string(tensor.type)];
  Json types = Json::object();
  for (const auto& [type, n] : counts) types[type] = n;
  return types;
}

Json tensors_json(std::span<const Tensor> tensors) {
  Json list = Json::array();
  for (const Tensor& tensor : tensors) {
    if (!is_head_tensor(tensor.name)) continue;
    list.push_back(
        Json{{"name", tensor.name}, {"type", to_string(tensor.type)}, {"shape", tensor.shape}});
  }
  return list;
}

// Tensors of a head, from the file's header.
Json head_tensors_json(const Checkpoint& checkpoint, const std::filesystem::path& file) {
  if (file == checkpoint.path()) return tensors_json(checkpoint.tensors());
  const auto open = open_weight_file(file, shown_path(file));
  if (!open) return Json::array();
  const auto contents = read_safetensors(open->map.bytes(), shown_path(file));
  return contents ? tensors_json(contents->tensors) : Json::array();
}

Json file_bytes(const std::filesystem::path& file) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(file, failed);
  return failed ? Json() : Json(bytes);
}

// The draft head: present, absent, or incomplete, which is any that is there and does not fit.
Json head_json(const Checkpoint& checkpoint, const Engine& engine, const HeadChoice& choice) {
  if (const HeadInUse* head = engine.head(); head != nullptr) {
    const HeadInfo& info = head->info;
    return Json{{"state", "present"},
                {"file", shown_path(head->file)},
                {"file_bytes", head->in_checkpoint ? Json() : file_bytes(head->file)},
                {"in_checkpoint", head->in_checkpoint},
                {"sha256", head->sha256},
                {"trunk_sha256", info.config.trunk_sha256},
                {"tap", to_string(info.config.tap)},
                {"tap_type", to_string(info.config.tap_type)},
                {"modules", info.config.modules},
                {"depths", info.config.depths},
                {"draft_vocabulary", info.draft_vocabulary},
                {"parameters", info.parameters},
                {"weight_bytes", info.weight_bytes},
                {"layer_type", info.layer_type},
                {"output_type", info.output_type},
                {"tensors", head_tensors_json(checkpoint, head->file)}};
  }
  const HeadSearch search = find_head(checkpoint, choice.file);
  Json head{{"state", search.found || search.fault ? "incomplete" : "absent"},
            {"reason", engine.no_head()},
            {"tensors", Json::array()}};
  const auto file = search.found ? search.found->file : search.fault_file;
  if (!file.empty()) {
    head["file"] = shown_path(file);
    head["tensors"] = head_tensors_json(checkpoint, file);
  }
  return head;
}

std::string head_line(const Json& head) {
  if (head["state"] == "absent") return "none";
  if (head["state"] == "incomplete") return "incomplete";
  const std::string place = head["in_checkpoint"].get<bool>()
                                ? "in the checkpoint"
                                : fmt::format("{}, {} bytes", head["file"].get<std::string>(),
                                              with_separators(head["file_bytes"].get<int64_t>()));
  return fmt::format("{}, {} parameters, tap {}, {} module{}, {} words, {} over {}", place,
                     with_separators(head["parameters"].get<int64_t>()),
                     head["tap"].get<std::string>(), head["modules"].dump(),
                     head["modules"] == 1 ? "" : "s", head["draft_vocabulary"].dump(),
                     head["layer_type"].get<std::string>(), head["output_type"].get<std::string>());
}

// What the head's drafts are worth.
Json use_json(const measure::HeadUse& use) {
  return Json{{"verdict", to_string(use.verdict)},
              {"drafted", use.drafted},
              {"accepted", use.accepted},
              {"commonest_token", use.commonest},
              {"constant", use.constant ? Json(*use.constant) : Json()}};
}

std::string use_line(const measure::HeadUse& use) {
  const double share =
      use.drafted > 0 ? 100 * static_cast<double>(use.accepted) / static_cast<double>(use.drafted)
                      : 0;
  const std::string counts =
      fmt::format("{} of {} first drafts stood ({:.0f} %)", use.accepted, use.drafted, share);
  const std::string constant =
      fmt::format("the commonest token alone would give {:.0f} %", 100 * use.commonest);
  switch (use.verdict) {
    case measure::HeadUse::Verdict::Useful:
      return fmt::format("useful: {}; {}", counts, constant);
    case measure::HeadUse::Verdict::Useless:
      return fmt::format("useless: {}, no better than chance; {}", counts, constant);
    case measure::HeadUse::Verdict::Constant:
      return fmt::format("useless: its output is constant, it drafts token {} alone; {}",
                         *use.constant, counts);
    case measure::HeadUse::Verdict::Unclear:
      break;
  }
  return fmt::format("unclear: {}, and {}", counts, constant);
}

// The store of n-grams, or null.
Json store_json(const StoreInUse* in_use) {
  if (in_use == nullptr) return nullptr;
  const NgramStore& store = *in_use->store;
  return Json{{"file", shown_path(in_use->file)}, {"file_bytes", store.bytes()},
              {"entries", store.n_entries()},     {"tokens", store.n_tokens()},
              {"sha256", store.sha256()},         {"trunk_sha256", store.trunk_sha256()}};
}

std::string store_line(const Json& store) {
  if (store.is_null()) return "none";
  return fmt::format("{}, {} bytes, {} entries of {} tokens", store["file"].get<std::string>(),
                     with_separators(store["file_bytes"].get<int64_t>()),
                     with_separators(store["entries"].get<int64_t>()),
                     with_separators(store["tokens"].get<int64_t>()));
}

// Names in the file that are no part of what runs.
std::vector<std::string> unused_tensors(const Engine& engine) {
  std::vector<std::string> names = engine.model().info().unused_tensors;
  if (engine.head() != nullptr && engine.head()->in_checkpoint) {
    std::erase_if(names, [](const std::string& name) { return is_head_tensor(name); });
  }
  return names;
}

std::string joined(const Json& counts) {
  std::string text;
  for (const auto& [type, n] : counts.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n.dump(), type);
  }
  return text;
}

// The first few names, and how many more there are.
std::string names_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  if (names.empty()) return "none";
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

void print_table(const Json& report, const ModelInfo& info, const Engine& engine,
                 const std::optional<measure::HeadUse>& use) {
  const auto line = [](const char* name, const std::string& value) {
    say("{:<16}{}\n", name, value);
  };
  const Json& tokenizer = report["tokenizer"];
  line("family", info.family);
  line("parameters", with_separators(info.parameters));
  line("shape", fmt::format("{} layers, {} wide, {} hidden, {}/{} heads of {}, {} words",
                            info.n_layers, info.dim, info.hidden_dim, info.n_heads, info.n_kv_heads,
                            info.head_dim, with_separators(info.vocab_size)));
  if (info.n_sliding > 0) {
    line("windows", fmt::format("{} of {} layers see the last {} positions", info.n_sliding,
                                info.n_layers, info.window));
  }
  line("context", fmt::format("{} of {}", engine.context(), info.context_length));
  line("weights", fmt::format("{} bytes a pass, pages of {}", with_separators(info.weight_bytes),
                              report["page_size"].get<std::string>()));
  line("types", joined(report["types"]));
  for (const Json& change : report["converted"]) {
    line("converted",
         fmt::format("{} {} to {}, {}", change["tensors"].dump(), change["from"].get<std::string>(),
                     change["to"].get<std::string>(),
                     change["exact"].get<bool>() ? "no value changes" : "values are rounded"));
  }
  line("head", head_line(report["head"]));
  if (use) line("head check", use_line(*use));
  line("store", store_line(report["store"]));
  line("unused tensors", names_of(report["unused_tensors"].get<std::vector<std::string>>()));
  line("tokenizer", tokenizer.is_null()
                        ? "none"
                        : fmt::format("{}, {} words", tokenizer["description"].get<std::string>(),
                                      tokenizer["vocab_size"].dump()));
  line("chat template", engine.chat_template() != nullptr ? "yes" : "none");
  line("end ids", join_ids({engine.end_ids().begin(), engine.end_ids().end()}));
  line("sha256", report["sha256"].get<std::string>());
  line("runs on", fmt::format("{}, {} numerics, {} threads, {}", info.isa, info.numerics,
                              engine.threads(), report["cpu"].get<std::string>()));
  for (const Json& warning : report["warnings"]) line("warning", warning.get<std::string>());
}

}  // namespace

int inspect(Args args) {
  ModelFlags model;
  JsonFile json;
  Flags flags("inspect", "What a checkpoint holds and what will run.",
              "paceline inspect model.gguf --json -");
  model.add(flags);
  std::optional<std::string> head;
  flags.text("--head", "FILE", head, "draft head (default: the one found for the model)");
  bool check_head = false;
  flags.flag("--check-head", check_head,
             "also draft with the head over three texts, and exit 1 where it is useless");
  std::optional<std::string> store;
  flags.text("--store", "FILE", store, "store of n-grams (default: the one found for the model)");
  flags.group("Output");
  json.add_flag(flags);
  const auto outcome = flags.parse(args);
  if (!outcome) return fail("inspect", outcome.error());
  if (*outcome == Flags::Outcome::HelpShown) return kExitSuccess;
  std::vector<std::string> inputs = {model.model};
  for (const auto& file : {head, store})
    if (file) inputs.push_back(*file);
  if (auto ok = check_outputs({json.file()}, inputs); !ok) return fail("inspect", ok.error());

  const auto checkpoint = Checkpoint::open(model.model);
  if (!checkpoint) return fail("inspect", checkpoint.error());
  const HeadChoice choice{.load = true, .file = head.value_or("")};
  const auto engine = model.open(choice, {.load = true, .file = store.value_or("")});
  if (!engine) return fail("inspect", engine.error());

  const ModelInfo& info = engine->model().info();
  Json report = report_header("inspect", model, *engine, "none");
  report["parameters"] = info.parameters;
  report["weight_bytes"] = info.weight_bytes;
  report["types"] = types_json(*checkpoint);
  report["converted"] = converted_json(*checkpoint, model);
  report["head"] = head_json(*checkpoint, *engine, choice);
  std::optional<measure::HeadUse> use;
  if (check_head) {
    constexpr int kTokens = 64;
    catch_interrupts();
    const auto prompts = measure::head_use_prompts(*engine);
    if (!prompts) return fail("inspect", prompts.error());
    const auto found = measure::look_at_head(*engine, *prompts, kTokens, interrupted);
    if (!found) return fail("inspect", found.error());
    use = *found;
    report["head"]["check"] = use_json(*use);
  }
  report["store"] = store_json(engine->store());
  report["unused_tensors"] = unused_tensors(*engine);
  report["tokenizer"] = tokenizer_json(engine->tokenizer());
  report["chat_template"] = engine->chat_template() != nullptr;
  report["end_ids"] = std::vector<TokenId>(engine->end_ids().begin(), engine->end_ids().end());
  report["sha256"] = engine->model_sha256();
  report["layers"] = info.n_layers;
  report["dim"] = info.dim;
  report["hidden_dim"] = info.hidden_dim;
  report["n_heads"] = info.n_heads;
  report["n_kv_heads"] = info.n_kv_heads;
  report["head_dim"] = info.head_dim;
  report["vocab_size"] = info.vocab_size;
  report["context_length"] = info.context_length;
  report["sliding_layers"] = info.n_sliding;
  report["window"] = info.window;
  if (!json.is_stdout()) print_table(report, info, *engine, use);
  if (auto written = json.write(report); !written) return fail("inspect", written.error());
  using Verdict = measure::HeadUse::Verdict;
  const bool useless =
      use && (use->verdict == Verdict::Useless || use->verdict == Verdict::Constant);
  return useless ? kExitCheckFailed : kExitSuccess;
}

}  // namespace paceline::apps

#include "apps/spec_flags.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "apps/text_file.h"
#include "apps/values.h"
#include "io/json_parse.h"

namespace paceline::apps {
namespace {

struct NamedDrafter {
  const char* name;
  DrafterKind kind;
};
constexpr std::array kDrafters = {
    NamedDrafter{"auto", DrafterKind::Auto},     NamedDrafter{"none", DrafterKind::None},
    NamedDrafter{"lookup", DrafterKind::Lookup}, NamedDrafter{"mtp", DrafterKind::Mtp},
    NamedDrafter{"union", DrafterKind::Union},   NamedDrafter{"scripted", DrafterKind::Scripted}};

std::string drafter_names(const char* between) {
  std::string names;
  for (const NamedDrafter& drafter : kDrafters)
    names += (names.empty() ? "" : between) + std::string(drafter.name);
  return names;
}

// "4", "auto", "8:15": the depth, and the drafts of a tree where it has them.
Result<DraftShape> parse_shape(std::string_view text) {
  const Error bad = wants(fmt::format("0 to {} or auto", kMaxDepth), text);
  const size_t colon = std::min(text.find(':'), text.size());
  DraftShape shape;
  if (const auto word = text.substr(0, colon); word != "auto") {
    const auto depth = parse_integer(word, 0, kMaxDepth);
    if (!depth) return bad;
    shape.depth = static_cast<int>(*depth);
  }
  if (colon == text.size()) return shape;
  const auto tree = parse_integer(text.substr(colon + 1), 0, kMaxTree);
  if (!tree)
    return wants(
        fmt::format("a depth, or a depth and the drafts of a tree, 0 to {}, as 8:15", kMaxTree),
        text);
  shape.tree = static_cast<int>(*tree);
  return shape;
}

// Ids of one line: 1,2,3 or [1,2,3] or {"token_ids": [1,2,3]}.
Result<std::vector<TokenId>> parse_script(std::string_view line) {
  const Error bad = wants(R"(lines such as 1,2,3 or {"token_ids": [1,2,3]})", line);
  if (line.empty() || (line[0] != '[' && line[0] != '{')) {
    auto ids = parse_ids(line);
    if (!ids) return bad;
    return ids;
  }
  const auto json = parse_json<nlohmann::json>(line);
  if (json.is_discarded()) return bad;
  const auto list = json.is_object() ? json.find("token_ids") : json.end();
  if (json.is_object() && list == json.end()) return bad;
  const nlohmann::json& values = json.is_object() ? *list : json;
  if (!values.is_array()) return bad;
  std::vector<TokenId> ids;
  for (const auto& value : values) {
    const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= 0x7fffffffu;
    if (!fits) return bad;
    ids.push_back(value.get<TokenId>());
  }
  return ids;
}

}  // namespace

std::string shape_name(const DraftShape& shape) {
  std::string name = shape.depth == kAutoDepth ? "auto" : fmt::format("{}", shape.depth);
  return shape.tree == kAutoTree ? name : name + fmt::format(":{}", shape.tree);
}

Json depth_json(const DraftShape& shape) {
  return shape.depth == kAutoDepth ? Json("auto") : Json(shape.depth);
}
Json tree_json(const DraftShape& shape) {
  return shape.tree == kAutoTree ? Json("auto") : Json(shape.tree);
}

Json shape_label(const DraftShape& shape) {
  return shape.tree == kAutoTree ? depth_json(shape) : Json(shape_name(shape));
}

void SpecFlags::add(Flags& flags, const std::string& depths_help,
                    std::vector<DraftShape> default_arms) {
  default_arms_ = std::move(default_arms);
  flags.group("Speculation");
  flags.value(
      "--drafter", drafter_names("|"),
      [this](std::string_view given) -> Result<void> {
        for (size_t i = 0; i < kDrafters.size(); ++i) {
          if (given != kDrafters[i].name) continue;
          drafter = static_cast<int>(i);
          return {};
        }
        return wants("one of " + drafter_names(", "), given);
      },
      "who drafts (default: auto, which is union where the model has a head or a store, else "
      "lookup)");
  flags.value(
      "--depth", "K|auto",
      [this](std::string_view given) -> Result<void> {
        const auto shape = parse_shape(given);
        if (!shape) return shape.error();
        depth_ = *shape;
        return {};
      },
      fmt::format("drafts a round, 0 to {}, or auto, which decides each round (default: auto)",
                  kMaxDepth));
  flags.value(
      "--depths", "K,K,...",
      [this](std::string_view given) -> Result<void> {
        for (size_t begin = 0; begin <= given.size();) {
          const size_t comma = std::min(given.find(',', begin), given.size());
          const auto shape = parse_shape(given.substr(begin, comma - begin));
          if (!shape)
            return wants(fmt::format("0 to {} or auto, separated by commas, each alone or with the "
                                     "drafts of a tree, as 8:15",
                                     kMaxDepth),
                         given);
          arms.push_back(*shape);
          begin = comma + 1;
        }
        constexpr size_t kMostArms = 32;
        if (arms.size() > kMostArms) return wants("32 arms at most", given);
        return {};
      },
      depths_help);
  flags.text("--drafts", "FILE", drafts,
             "what the scripted drafter drafts: ids of the answer, a line a prompt");
  flags.integer(
      "--tree", tree_, 0, kMaxTree,
      "drafts a round that form a tree at most, 0: a chain (default: as many as pay where "
      "the depth is auto, else a chain)");
  flags.text("--head", "FILE", head,
             "draft head (default: the one found for the model: in it, beside it, in heads/)");
  flags.text("--store", "FILE", store,
             "n-grams of the model's own answers (default: those found for the model: learnt here, "
             "or in heads/)");
  flags.flag("--learn", learn,
             "answers make the store grow: FILE, or one in your data folder; prompts do not");
  flags.flag("--allow-inexact", allow_inexact,
             "draft even where the gate has not found this model exact on this machine");
}

Result<void> SpecFlags::check(bool learns) {
  if (depth_ && !arms.empty()) {
    return Error{ErrorCode::BadUsage, "--depth and --depths are given both; use one"};
  }
  if (depth_) arms = {*depth_};
  if (arms.empty()) arms = default_arms_;
  for (DraftShape& arm : arms) {
    if (arm.tree == kAutoTree) arm.tree = tree_;
    if (arm.depth == 0) arm.tree = kAutoTree;
    if (arm.tree > 0 && kind() == DrafterKind::Scripted)
      return Error{ErrorCode::BadUsage, "--drafter scripted drafts chains; leave --tree out"};
  }
  if (kind() == DrafterKind::Scripted && !drafts) {
    return Error{ErrorCode::BadUsage, "--drafter scripted needs --drafts FILE"};
  }
  if (drafts && kind() != DrafterKind::Scripted) {
    return Error{ErrorCode::BadUsage, "--drafts goes with --drafter scripted only"};
  }
  if (head && head->empty()) return Error{ErrorCode::BadUsage, "--head wants the name of a file"};
  if (store && store->empty())
    return Error{ErrorCode::BadUsage, "--store wants the name of a file"};
  if (learn && !learns)
    return Error{ErrorCode::BadUsage, "--learn is for generate and chat; leave it out"};
  return {};
}

DrafterKind SpecFlags::kind() const { return kDrafters[static_cast<size_t>(drafter)].kind; }

bool SpecFlags::drafts_at_all() const {
  return kind() != DrafterKind::None &&
         std::any_of(arms.begin(), arms.end(), [](const auto& arm) { return arm.depth != 0; });
}

std::vector<std::string> SpecFlags::files() const {
  std::vector<std::string> named;
  for (const auto& file : {drafts, head, store})
    if (file && *file != "-") named.push_back(*file);
  return named;
}

HeadChoice SpecFlags::head_choice() const {
  const bool may_use =
      kind() == DrafterKind::Auto || kind() == DrafterKind::Mtp || kind() == DrafterKind::Union;
  return {.load = head.has_value() || (may_use && drafts_at_all()), .file = head.value_or("")};
}

StoreChoice SpecFlags::store_choice() const {
  const bool may_use = kind() == DrafterKind::Auto || kind() == DrafterKind::Union;
  return {.load = store.has_value() || learn || (may_use && drafts_at_all()),
          .file = store.value_or(""),
          .learn = learn};
}

const char* SpecFlags::drafter_name() const { return kDrafters[static_cast<size_t>(drafter)].name; }

Result<std::vector<std::vector<TokenId>>> SpecFlags::read_scripts(size_t n_prompts) const {
  std::vector<std::vector<TokenId>> scripts;
  if (!drafts) return scripts;
  const auto text = read_text("--drafts", *drafts);
  if (!text) return text.error();
  int line_number = 0;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    std::string_view line = std::string_view(*text).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    auto script = parse_script(line);
    if (!script) {
      return Error{ErrorCode::BadFormat, fmt::format("--drafts {} line {}: {}", *drafts,
                                                     line_number, script.error().message)};
    }
    scripts.push_back(*std::move(script));
  }
  if (scripts.size() == 1) {
    const std::vector<TokenId> for_all = scripts[0];
    scripts.resize(n_prompts, for_all);
  }
  if (scripts.size() != n_prompts) {
    return Error{ErrorCode::BadFormat,
                 fmt::format("--drafts {} has {} lines for {} prompts; it wants one for each, or "
                             "one for all",
                             *drafts, scripts.size(), n_prompts)};
  }
  return scripts;
}

}  // namespace paceline::apps

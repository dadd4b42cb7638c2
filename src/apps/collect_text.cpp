#include "apps/collect_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/text_file.h"
#include "base/sha256.h"
#include "io/json_parse.h"
#include "io/shown.h"
#include "measure/reading.h"

namespace paceline::apps {
namespace {

using nlohmann::json;

Result<TextSource> read_line(std::string_view line, TextSource source) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::BadFormat, source.where + ": " + what};
  };
  const json object = parse_json<json>(line);
  if (!object.is_object()) return bad("wants a JSON object");
  const auto text = object.find("text");
  if (text == object.end() || !text->is_string()) return bad("wants a text under the key text");
  source.text = text->get<std::string>();
  for (const auto& [key, field] : {std::pair("id", &source.id), {"category", &source.category}}) {
    const auto value = object.find(key);
    if (value == object.end() || value->is_null()) continue;
    if (!value->is_string()) return bad(fmt::format("wants a text as {}", key));
    *field = value->get<std::string>();
  }
  return source;
}

Result<std::vector<TextSource>> read_json_lines(std::string_view text, const std::string& name) {
  std::vector<TextSource> sources;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto source = read_line(line, {.id = fmt::format("{}", line_number),
                                   .category = "",
                                   .where = fmt::format("{} line {}", name, line_number),
                                   .text = ""});
    if (!source) return source.error();
    sources.push_back(*std::move(source));
  }
  return sources;
}

}  // namespace

Result<std::vector<TextSource>> read_texts(const std::string& path, std::string* sha256) {
  const auto text = read_text("--text", path);
  if (!text) return text.error();
  *sha256 = paceline::sha256(std::as_bytes(std::span(*text)));
  if (path.ends_with(".jsonl")) return read_json_lines(*text, path);
  const std::string stem = std::filesystem::path(path).stem().string();
  return std::vector<TextSource>{
      {.id = path == "-" ? "text" : stem, .category = "", .where = path, .text = *text}};
}

Result<std::vector<Prompt>> cut_texts(const Engine& engine, const std::vector<TextSource>& texts,
                                      int piece) {
  std::vector<Prompt> pieces;
  for (const TextSource& source : texts) {
    const auto ids = engine.encode_text(source.text);
    if (!ids) return Error{ids.error().code, source.where + ": " + ids.error().message};
    const Tokenizer& tokenizer = *engine.tokenizer();
    const bool has_bos = tokenizer.adds_bos() && tokenizer.bos();
    std::span<const TokenId> rest = std::span(*ids).subspan(has_bos ? 1 : 0);
    const size_t most = static_cast<size_t>(piece) - (has_bos ? 1 : 0);
    const bool is_cut = rest.size() > most;
    for (int number = 1; !rest.empty(); ++number) {
      const auto part = rest.first(std::min(most, rest.size()));
      rest = rest.subspan(part.size());
      Prompt one{is_cut ? fmt::format("{}#{}", source.id, number) : source.id, source.category, {}};
      if (has_bos) one.ids.push_back(*tokenizer.bos());
      one.ids.insert(one.ids.end(), part.begin(), part.end());
      if (one.ids.size() >= 2) pieces.push_back(std::move(one));
    }
  }
  if (pieces.empty()) {
    return Error{ErrorCode::BadFormat, "--text holds no text of two tokens or more"};
  }
  return pieces;
}

Result<CollectProgress> collect_text(const Engine& engine, const std::vector<Prompt>& pieces,
                                     const CollectAnswers& options, DumpWriter& dump) {
  const auto work = work_left(pieces, dump);
  if (!work) return work.error();
  CollectProgress progress;
  progress.total = pieces.size();
  progress.skipped = pieces.size() - work->size();
  const auto start = std::chrono::steady_clock::now();
  for (const Prompt* piece : *work) {
    if (options.stop && options.stop()) break;
    const std::span<const TokenId> ids = piece->ids;
    StreamRecorder recorder(piece->id, piece->category, ids.first(1), options.rows);
    if (auto read = measure::record_given(engine, ids, recorder); !read) return read.error();
    const NewStream stream = recorder.finish_text();
    if (auto added = dump.add(stream); !added) return added.error();
    progress.count(stream);
    progress.tokens += static_cast<int64_t>(ids.size());
    progress.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (options.progress) options.progress(progress);
  }
  return progress;
}

}  // namespace paceline::apps

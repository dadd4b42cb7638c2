#include "train/run_state.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/mapped_file.h"
#include "base/sha256.h"
#include "fmt/format.h"
#include "io/output_file.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// "PLTRAIN2", length of the JSON head (u64, little-endian), the head, float32 values, then the
// SHA-256 of all of it as text.
constexpr char kMagic[8] = {'P', 'L', 'T', 'R', 'A', 'I', 'N', '2'};
constexpr size_t kDigest = 64;
constexpr size_t kFront = sizeof(kMagic) + sizeof(uint64_t);

fs::path before(const fs::path& file) { return file.string() + ".before"; }

Json head_json(const RunState& s) {
  Json history = Json::array();
  for (const HistoryEntry& entry : s.history) history.push_back(to_json(entry));
  Json sums = Json::array();
  for (const LossSums& sum : s.sums) sums.push_back({sum.loss, sum.targets, sum.hits});
  return {{"settings", s.settings},
          {"step", s.step},
          {"optimiser_steps", s.optimiser_steps},
          {"positions", s.positions},
          {"skipped", s.skipped},
          {"seconds", s.seconds},
          {"flat", s.flat},
          {"not_finite", s.not_finite},
          {"evaluation_is_due", s.evaluation_is_due},
          {"distance", s.distance},
          {"sums", std::move(sums)},
          {"loss_steps", s.loss_steps},
          {"has_average", s.has_average},
          {"history", std::move(history)},
          {"values", s.values.size()}};
}

Result<RunState> parse(std::span<const std::byte> bytes, const std::string& name) {
  const Error damaged{ErrorCode::BadFormat,
                      name + ": is no whole state of a training run; it was cut short or damaged"};
  if (bytes.size() < kFront + kDigest || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return damaged;
  const auto body = bytes.first(bytes.size() - kDigest);
  const std::string digest = sha256(body);
  if (std::memcmp(digest.data(), bytes.data() + body.size(), kDigest) != 0) return damaged;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + sizeof(kMagic), sizeof(length));
  if (length > body.size() - kFront) return damaged;
  const auto* text = reinterpret_cast<const char*>(bytes.data() + kFront);
  const Json head = Json::parse(text, text + length, nullptr, false);
  const auto values = body.subspan(kFront + length);
  RunState s;
  const auto number = [&](const char* key, auto& to) {
    const auto it = head.find(key);
    if (it == head.end() || !it->is_number()) return false;
    it->get_to(to);
    return true;
  };
  uint64_t n_values = 0;
  if (!head.is_object() || !number("step", s.step) ||
      !number("optimiser_steps", s.optimiser_steps) || !number("positions", s.positions) ||
      !number("skipped", s.skipped) || !number("seconds", s.seconds) || !number("flat", s.flat) ||
      !number("not_finite", s.not_finite) || !number("loss_steps", s.loss_steps) ||
      !number("values", n_values) || values.size() != n_values * sizeof(float))
    return damaged;
  for (const char* list : {"settings", "history", "distance", "sums"})
    if (!head.contains(list) || !head[list].is_array()) return damaged;
  for (const Json& value : head["distance"]) {
    if (!value.is_number()) return damaged;
    s.distance.push_back(value);
  }
  for (const Json& sum : head["sums"]) {
    if (!sum.is_array() || sum.size() != 3 || !std::ranges::all_of(sum, &Json::is_number))
      return damaged;
    s.sums.push_back({.loss = sum[0], .targets = sum[1], .hits = sum[2]});
  }
  for (const Json& setting : head["settings"]) {
    if (!setting.is_string()) return damaged;
    s.settings.push_back(setting);
  }
  for (const Json& entry : head["history"])
    if (!from_json(entry, s.history.emplace_back())) return damaged;
  for (const auto& [key, to] :
       {std::pair("has_average", &s.has_average), {"evaluation_is_due", &s.evaluation_is_due}}) {
    const auto it = head.find(key);
    if (it == head.end() || !it->is_boolean()) return damaged;
    *to = it->get<bool>();
  }
  s.values.resize(n_values);
  std::memcpy(s.values.data(), values.data(), values.size());
  return s;
}

Result<RunState> read_one(const fs::path& file) {
  const auto mapped = MappedFile::open(file);
  if (!mapped) return mapped.error();
  return parse(mapped->bytes(), file.string());
}

}  // namespace

Result<void> write_run_state(const fs::path& file, const RunState& state) {
  const std::string head = head_json(state).dump();
  const uint64_t length = head.size();
  std::string front(kMagic, sizeof(kMagic));
  front.append(reinterpret_cast<const char*>(&length), sizeof(length));
  front += head;
  Sha256 digest;
  digest.update(std::as_bytes(std::span(front)));
  digest.update(std::as_bytes(std::span(state.values)));
  const std::string sum = digest.finish();

  auto out = OutputFile::create(file);
  if (!out) return out.error();
  for (const auto part : {std::as_bytes(std::span(front)), std::as_bytes(std::span(state.values)),
                          std::as_bytes(std::span(sum))})
    if (auto written = out->write(part); !written) return written;
  std::error_code failed;
  if (fs::exists(file, failed)) fs::rename(file, before(file), failed);
  return out->commit();
}

Result<RunState> read_run_state(const fs::path& file, fs::path* used) {
  std::string faults;
  for (const fs::path& each : {file, before(file)}) {
    auto state = read_one(each);
    if (state) {
      *used = each;
      return state;
    }
    faults += (faults.empty() ? "" : "; ") + state.error().message;
  }
  return Error{ErrorCode::NotFound, "no run to resume: " + faults};
}

std::string setting_that_differs(const RunState& state, std::span<const std::string> settings) {
  for (size_t i = 0; i < std::max(settings.size(), state.settings.size()); ++i) {
    const std::string now = i < settings.size() ? settings[i] : "nothing";
    const std::string then = i < state.settings.size() ? state.settings[i] : "nothing";
    if (now != then) return fmt::format("{} where the run to resume has {}", now, then);
  }
  return {};
}

}  // namespace paceline::train

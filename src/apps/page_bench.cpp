// The page of a bench.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "apps/page_parts.h"
#include "apps/pages.h"
#include "engine/engine.h"

namespace paceline::apps {
namespace {

bool is_plain(const Json& arm) { return at(arm, "depth") == 0; }

// None for "auto", for trees, whose rounds are no chain's, and for what no arm can have.
std::optional<size_t> fixed_depth(const Json& arm) {
  if (number(at(arm, "tree")).value_or(0) > 0) return std::nullopt;
  const Value depth = number(at(arm, "depth"));
  if (!depth || !(*depth >= 0 && *depth <= kMaxDepth)) return std::nullopt;
  return static_cast<size_t>(*depth);
}

Value plain_rate(const Json& report) {
  for (const Json& arm : at(report, "arms"))
    if (is_plain(arm)) return number(at(arm, "tokens_per_second"));
  return std::nullopt;
}

std::string interval_text(const Json& interval) {
  const Value low = number(at(interval, 0));
  const Value high = number(at(interval, 1));
  return low && high ? fmt::format("{:.2f} to {:.2f}", *low, *high) : "-";
}

std::vector<std::string> arm_row(std::string name, const Json& arm) {
  const Json& ms = at(arm, "round_ms");
  return {std::move(name),
          text_of(at(arm, "drafter")),
          counted(number(at(arm, "tokens"))),
          shown(number(at(arm, "tokens_per_round")), 2),
          shown(number(at(arm, "tokens_per_second")), 1),
          shown(number(at(arm, "speedup")), 2),
          interval_text(at(arm, "speedup_interval")),
          interval_text(at(arm, "speedup_interval_prompts")),
          shown(number(at(arm, "speedup_overall")), 2),
          shown(number(at(arm, "predicted_tokens_per_second")), 1),
          shown(number(at(ms, "draft")), 2),
          shown(number(at(ms, "verify")), 2),
          shown(number(at(ms, "other")), 2)};
}

std::vector<std::string> arm_columns() {
  return {"arm",      "drafter",   "tokens",          "tokens/round",
          "tokens/s", "speedup",   "run again, 95 %", "other prompts, 95 %",
          "overall",  "predicted", "draft ms",        "verify ms",
          "other ms"};
}

void add_tiles(const Json& report, Page& page) {
  const Json* best = nullptr;
  for (const Json& arm : at(report, "arms")) {
    const Value speedup = number(at(arm, "speedup"));
    if (is_plain(arm) || !speedup) continue;
    if (best == nullptr || *speedup > *number(at(*best, "speedup"))) best = &arm;
  }
  page.tile("plain, tokens/s", shown(plain_rate(report), 1));
  if (best != nullptr) {
    page.tile(arm_name(*best) + ", tokens/s", shown(number(at(*best, "tokens_per_second")), 1));
    page.tile("speedup", shown(number(at(*best, "speedup")), 2) + "×");
    page.tile("tokens per round", shown(number(at(*best, "tokens_per_round")), 2));
  }
  if (const Value step = number(at(report, "head_cost")))
    page.tile("a step of the head, passes", shown(step, 3));
  const Value reached = number(at(at(report, "bandwidth"), "reached"));
  const Value limit = number(at(at(report, "bandwidth"), "limit"));
  if (reached && limit && *limit > 0)
    page.tile("of the memory's speed", percent(*reached / *limit));
  const bool same = at(report, "identical") == true;
  page.tile("same text in all arms", same ? "yes" : "no", same ? Mood::Good : Mood::Bad);
}

void add_doubts(const Json& report, Page& page) {
  const auto list = [](const Json& entries) {
    std::string text;
    for (const Json& entry : entries) text += (text.empty() ? "" : ", ") + text_of(entry);
    return text;
  };
  if (at(report, "noisy") == true) {
    page.paragraph("Noisy; repeat on a quiet machine:", Mood::Bad);
    for (const Json& reason : at(report, "noisy_because"))
      page.paragraph(text_of(reason), Mood::Bad);
  }
  for (const Json& pair : at(report, "arms_alike"))
    page.paragraph(fmt::format("Depths {} and {} did the same, count for count: comparing them "
                               "shows nothing.",
                               text_of(at(pair, 0)), text_of(at(pair, 1))),
                   Mood::Bad);
  if (at(report, "complete") == false) page.paragraph("Not all prompts were run.", Mood::Bad);
  if (const Json& ids = at(report, "different"); !ids.empty())
    page.paragraph("Arms differ on " + list(ids) + ".", Mood::Bad);
  if (const Json& ids = at(report, "cyclic"); !ids.empty())
    page.paragraph("These answers run into a short cycle, and their acceptance says little: " +
                   list(ids) + ".");
}

// The deepest arm with a fixed depth, or the only one that drafts.
const Json* model_arm(const Json& report) {
  const Json* found = nullptr;
  for (const Json& arm : at(report, "arms")) {
    if (is_plain(arm)) continue;
    const auto depth = fixed_depth(arm);
    if (found == nullptr || (depth && fixed_depth(*found).value_or(0) < *depth)) found = &arm;
  }
  return found;
}

void add_speed(const Json& report, Page& page) {
  const Value plain = plain_rate(report);
  const Json* const drafting = model_arm(report);
  if (!plain || drafting == nullptr) return;
  const auto model = modelled_speed(*drafting, numbers(at(at(report, "round_cost"), "multiplier")),
                                    number(at(report, "draft_cost")).value_or(0), *plain);
  Plot plot{"drafts a round at most (depth)", "tokens/s", {}, {}, {}};
  size_t n = model.size();
  for (const Json& arm : at(report, "arms"))
    if (const auto depth = fixed_depth(arm)) n = std::max(n, *depth + 1);
  Series measured{"measured", std::vector<Value>(n), Series::Form::Points};
  measured.interval.resize(n);
  Series predicted{"predicted from the arm's own rounds", std::vector<Value>(n),
                   Series::Form::Points};
  Series curve{"cost model", model, Series::Form::Dashed};
  curve.y.resize(n);
  std::vector<Series> autos;
  Table table{{"arm", "measured", "run again, 95 %", "predicted", "cost model"}, {}};
  for (size_t d = 0; d < n; ++d) plot.x.push_back(static_cast<double>(d));
  for (const Json& arm : at(report, "arms")) {
    const auto depth = fixed_depth(arm);
    const Value rate = number(at(arm, "tokens_per_second"));
    const Value guess = number(at(arm, "predicted_tokens_per_second"));
    const Value low = number(at(at(arm, "speedup_interval"), 0));
    const Value high = number(at(at(arm, "speedup_interval"), 1));
    std::string range = "-";
    if (low && high && !is_plain(arm))
      range = fmt::format("{:.1f} to {:.1f}", *low * *plain, *high * *plain);
    std::string modelled = "-";
    if (depth) {
      const size_t d = *depth;
      measured.y[d] = rate;
      if (!is_plain(arm)) predicted.y[d] = guess;
      if (low && high && !is_plain(arm)) measured.interval[d] = {*low * *plain, *high * *plain};
      modelled = shown(curve.y[d], 1);
    } else {
      autos.push_back({arm_name(arm), std::vector<Value>(n, rate), Series::Form::Dashed});
    }
    table.rows.push_back(
        {arm_name(arm), shown(rate, 1), range, shown(guess, 1), std::move(modelled)});
  }
  plot.series = {std::move(measured), std::move(predicted), std::move(curve)};
  for (Series& line : autos) plot.series.push_back(std::move(line));
  page.figure("Speed against depth",
              fmt::format("Whiskers are 95 % intervals of the speedup when these prompts are run "
                          "again, on the plain arm's median; without repeats there are none. The "
                          "cost model's curve takes the rounds of {} with deeper drafts cut off.",
                          arm_name(*drafting)),
              plot, table);
}

// One kind of acceptance of all arms that draft.
void add_acceptance(const Json& report, std::string_view field, const std::string& title,
                    const std::string& note, Page& page) {
  Plot plot{"depth of the draft", "share", {}, {}, {}};
  Table table{{"depth"}, {}};
  size_t n = 0;
  for (const Json& arm : at(report, "arms")) {
    auto y = numbers(at(arm, field));
    while (!y.empty() && !y.back()) y.pop_back();  // depths that no round went to
    n = std::max(n, y.size());
  }
  for (size_t d = 1; d <= n; ++d) {
    plot.x.push_back(static_cast<double>(d));
    table.rows.push_back({fmt::format("{}", d)});
  }
  for (const Json& arm : at(report, "arms")) {
    auto y = numbers(at(arm, field));
    if (y.empty()) continue;
    y.resize(n);
    for (size_t d = 0; d < n; ++d) table.rows[d].push_back(shown(y[d], 3));
    table.columns.push_back(arm_name(arm));
    plot.series.push_back({arm_name(arm), std::move(y)});
  }
  if (!plot.series.empty()) page.figure(title, note, plot, table);
}

void add_over_position(const Json& report, Page& page) {
  Plot plot{"position in the answer", "tokens per round", {}, {}, {}};
  Table table{{"from token"}, {}};
  size_t n = 0;
  Value width;
  for (const Json& arm : at(report, "arms")) {
    n = std::max(n, at(at(arm, "by_position"), "rounds").size());
    if (!width) width = number(at(at(arm, "by_position"), "width"));
  }
  if (n == 0 || !width) return;
  for (size_t i = 0; i < n; ++i) {
    const double from = static_cast<double>(i) * *width;
    plot.x.push_back(from + *width / 2);
    table.rows.push_back({fmt::format("{:.0f}", from)});
  }
  for (const Json& arm : at(report, "arms")) {
    if (is_plain(arm)) continue;
    auto rounds = numbers(at(at(arm, "by_position"), "rounds"));
    auto tokens = numbers(at(at(arm, "by_position"), "tokens"));
    rounds.resize(n);
    tokens.resize(n);
    Series line{arm_name(arm), std::vector<Value>(n)};
    for (size_t i = 0; i < n; ++i) {
      if (rounds[i] && tokens[i] && *rounds[i] > 0) line.y[i] = *tokens[i] / *rounds[i];
      table.rows[i].push_back(shown(line.y[i], 2));
      table.rows[i].push_back(counted(rounds[i]));
    }
    table.columns.push_back(arm_name(arm));
    table.columns.emplace_back("rounds");
    plot.series.push_back(std::move(line));
  }
  if (plot.series.empty()) return;
  page.figure("Tokens per round over position",
              "All prompts together. It rises where a drafter learns from the answer itself, and "
              "where answers run into a cycle.",
              plot, table);
}

void add_round_cost(const Json& report, Page& page) {
  const auto rows = numbers(at(at(report, "round_cost"), "rows"));
  auto ms = numbers(at(at(report, "round_cost"), "ms"));
  if (rows.empty()) return;
  ms.resize(rows.size());
  Plot plot{"rows of a pass", "ms", {}, {}, {}};
  const Value bytes = number(at(at(report, "bandwidth"), "bytes_per_round"));
  const Value limit = number(at(at(report, "bandwidth"), "limit"));
  Value roof;
  if (bytes && limit && *limit > 0) roof = *bytes / *limit * 1e-6;  // GB/s: 1e6 bytes a ms
  Table table{{"rows", "ms", "of one row", "ms a row", "of the limit"}, {}};
  for (size_t i = 0; i < rows.size(); ++i) {
    plot.x.push_back(rows[i].value_or(static_cast<double>(i + 1)));
    const Value each = ms[i] ? Value(*ms[i] / plot.x[i]) : std::nullopt;
    const Value of_one = ms[i] && ms[0] && *ms[0] > 0 ? Value(*ms[i] / *ms[0]) : std::nullopt;
    const Value share = ms[i] && roof && *ms[i] > 0 ? Value(*roof / *ms[i]) : std::nullopt;
    table.rows.push_back({fmt::format("{:.0f}", plot.x[i]), shown(ms[i], 3), shown(of_one, 2),
                          shown(each, 3), percent(share)});
  }
  plot.series.push_back({"measured", ms});
  if (roof)
    plot.series.push_back(
        {"bandwidth limit", std::vector<Value>(rows.size(), roof), Series::Form::Dashed});
  page.figure(
      "Cost of a round against its width",
      roof ? fmt::format("One trunk pass over so many rows. The dashed line is the time that "
                         "a bare loop takes to read the {:.1f} MB of weights and cache that "
                         "a pass must read: no pass is below it. While passes follow it, "
                         "drafts cost nearly nothing to verify.",
                         *bytes / 1e6)
           : std::string("One trunk pass over so many rows."),
      plot, table);
}

void add_categories(const Json& report, Page& page) {
  const Json& categories = at(report, "by_category");
  if (!categories.is_object() || categories.size() < 2) return;
  Table table{arm_columns(), {}};
  for (const auto& [category, arms] : categories.items())
    for (const Json& arm : arms)
      table.rows.push_back(arm_row(
          fmt::format("{}, {}", category.empty() ? "without category" : category, arm_name(arm)),
          arm));
  page.heading("By category");
  page.table(table);
}

void add_batches(const Json& report, Page& page) {
  Plot plot{"sequences together", "tokens/s", {}, {}, {}};
  Series line{"plain decoding", {}};
  Table table{{"sequences", "tokens/s", "run again, 95 %", "of one alone"}, {}};
  for (const Json& size : at(at(report, "batch"), "sizes")) {
    const Value n = number(at(size, "sequences"));
    if (!n || (!plot.x.empty() && *n <= plot.x.back())) continue;
    plot.x.push_back(*n);
    line.y.push_back(number(at(size, "tokens_per_second")));
    line.interval.emplace_back(number(at(at(size, "interval"), 0)),
                               number(at(at(size, "interval"), 1)));
    table.rows.push_back({counted(n), shown(line.y.back(), 1), interval_text(at(size, "interval")),
                          shown(number(at(size, "ratio")), 2)});
  }
  if (plot.x.empty()) return;
  plot.series.push_back(std::move(line));
  page.figure("Several sequences together", "One pass reads the weights once for all of them.",
              plot, table);
}

}  // namespace

std::vector<Value> modelled_speed(const Json& arm, const std::vector<Value>& cost,
                                  double draft_cost, double plain_tokens_per_second) {
  const Value rounds = number(at(arm, "rounds"));
  const auto drafted = numbers(at(arm, "drafted_by_depth"));
  const auto accepted = numbers(at(arm, "accepted_by_depth"));
  if (!rounds || *rounds <= 0 || cost.empty() || !cost[0]) return {};
  std::vector<Value> speeds = {plain_tokens_per_second};
  double tokens = 1;
  double passes = *cost[0];
  for (size_t d = 1; d <= std::min(drafted.size(), accepted.size()); ++d) {
    if (d >= cost.size() || !cost[d] || !drafted[d - 1] || !accepted[d - 1]) break;
    // Rounds that went so deep pay for the wider pass and the draft; tokens come where all stood.
    const double share = *drafted[d - 1] / *rounds;
    passes += share * (*cost[d] - *cost[d - 1] + draft_cost);
    tokens += *accepted[d - 1] / *rounds;
    speeds.emplace_back(plain_tokens_per_second * tokens / passes);
  }
  return speeds;
}

std::string bench_page(const Json& report) {
  Page page(title_of(report));
  page.subtitle(subtitle_of(report));
  add_tiles(report, page);
  add_doubts(report, page);
  Table arms{arm_columns(), {}};
  for (const Json& arm : at(report, "arms")) arms.rows.push_back(arm_row(arm_name(arm), arm));
  page.heading("Arms");
  page.table(arms);
  page.paragraph(
      "The speedup is the median of the prompts, overall is all tokens over all seconds. "
      "With 95 % confidence the speedup lies in the first interval when these prompts "
      "are run again, in the second one over other prompts like them. Prompts that were "
      "run once have no first interval.");
  add_speed(report, page);
  add_acceptance(report, "joint_acceptance", "Acceptance by depth",
                 "Rounds in which the drafts up to this depth all stood, of all rounds. A drafter "
                 "that says nothing counts as a draft that fell.",
                 page);
  add_acceptance(report, "conditional_acceptance", "Conditional acceptance by depth",
                 "The same, of those rounds in which the drafts before it stood.", page);
  add_over_position(report, page);
  add_round_cost(report, page);
  add_batches(report, page);
  add_categories(report, page);
  page.details("Conditions", head_table(report));
  return page.html();
}

}  // namespace paceline::apps

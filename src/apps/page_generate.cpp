// The page of generate: the texts, each token coloured by the depth that drafted it.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "apps/page_parts.h"
#include "apps/pages.h"
#include "spec/drafter.h"

namespace paceline::apps {
namespace {

constexpr int kColours = 8;  // deeper drafts share the last

// Pieces [text, depth, source]; depth 0 is the trunk's own and has no colour.
std::string coloured(const Json& pieces) {
  std::string html;
  for (const Json& piece : pieces) {
    const std::string text = escaped(text_of(at(piece, 0)));
    const int depth = static_cast<int>(std::clamp(number(at(piece, 1)).value_or(0), 0.0, 99.0));
    const std::string source = escaped(text_of(at(piece, 2)));
    html += depth == 0 ? text
                       : fmt::format(
                             "<span data-d=\"{}\" data-s=\"{}\" title=\"drafted at depth "
                             "{} by {}\">{}</span>",
                             std::min(depth, kColours), source, depth, source, text);
  }
  return html;
}

// Counts of one arm over all prompts.
struct Total {
  std::string name;
  double tokens = 0, rounds = 0, round_tokens = 0, seconds = 0;
  std::vector<double> drafted, accepted, gaps;
  Value gap_width;

  static void add(std::vector<double>& sums, const Json& counts) {
    const auto values = numbers(counts);
    sums.resize(std::max(sums.size(), values.size()));
    for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i].value_or(0);
  }
  void add(const Json& arm) {
    name = arm_name(arm);
    const double n = number(at(arm, "rounds")).value_or(0);
    tokens += static_cast<double>(at(arm, "token_ids").size());
    rounds += n;
    round_tokens += n * number(at(arm, "tokens_per_round")).value_or(0);
    seconds += number(at(arm, "decode_seconds")).value_or(0);
    add(drafted, at(arm, "drafted_by_depth"));
    add(accepted, at(arm, "accepted_by_depth"));
    add(gaps, at(at(arm, "gap_histogram"), "counts"));
    if (!gap_width) gap_width = number(at(at(arm, "gap_histogram"), "width"));
  }
  Value tokens_per_second() const {
    return seconds > 0 ? Value(round_tokens / seconds) : std::nullopt;
  }
  Value tokens_per_round() const {
    return rounds > 0 ? Value(round_tokens / rounds) : std::nullopt;
  }
};

std::vector<Total> totals_of(const Json& results) {
  std::vector<Total> totals;
  for (const Json& result : results) {
    const Json& arms = at(result, "arms");
    totals.resize(std::max(totals.size(), arms.size()));
    for (size_t i = 0; i < arms.size(); ++i) totals[i].add(at(arms, i));
  }
  return totals;
}

void add_acceptance(const std::vector<Total>& totals, Page& page) {
  Plot plot{"depth of the draft", "share of rounds", {}, {}, {}};
  Table table{{"depth"}, {}};
  size_t n = 0;
  for (const Total& total : totals) n = std::max(n, total.accepted.size());
  if (n == 0) return;
  for (size_t d = 1; d <= n; ++d) {
    plot.x.push_back(static_cast<double>(d));
    table.rows.push_back({fmt::format("{}", d)});
  }
  for (const Total& total : totals) {
    if (total.accepted.empty() || total.rounds <= 0) continue;
    for (const auto& [word, counts, form] :
         {std::tuple("stood", &total.accepted, Series::Form::Line),
          std::tuple("drafted", &total.drafted, Series::Form::Dashed)}) {
      Series line{fmt::format("{}, {}", word, total.name), std::vector<Value>(n), form};
      for (size_t d = 0; d < n; ++d) {
        if (d < counts->size()) line.y[d] = (*counts)[d] / total.rounds;
        table.rows[d].push_back(shown(line.y[d], 3));
      }
      table.columns.push_back(line.name);
      plot.series.push_back(std::move(line));
    }
  }
  if (!plot.series.empty())
    page.figure("Acceptance by depth",
                "Rounds in which a draft of this depth was verified, and in which it stood.", plot,
                table);
}

void add_gaps(const std::vector<Total>& totals, Page& page) {
  const auto found = std::find_if(totals.begin(), totals.end(), [](const Total& total) {
    return total.gaps.size() > 1 && total.gap_width;
  });
  if (found == totals.end()) return;
  Plot plot{"gap between the two largest logits", "tokens", {}, {}, {}};
  Series bars{"tokens", {}, Series::Form::Bars};
  Table table{{"gap from", "tokens"}, {}};
  for (size_t i = 0; i < found->gaps.size(); ++i) {
    const double from = static_cast<double>(i) * *found->gap_width;
    plot.x.push_back(from + *found->gap_width / 2);
    bars.y.emplace_back(found->gaps[i]);
    table.rows.push_back(
        {fmt::format("{:.1f}{}", from, i + 1 == found->gaps.size() ? " and more" : ""),
         counted(found->gaps[i])});
  }
  plot.series.push_back(std::move(bars));
  page.figure("Gap histogram",
              fmt::format("How far the second likeliest token was behind the likeliest, {}; the "
                          "last bar holds all that is beyond.",
                          found->name),
              plot, table);
}

void add_texts(const Json& results, Page& page) {
  std::string key = "<p class=\"key\">Drafted at depth ";
  for (int d = 1; d <= kColours; ++d)
    key += fmt::format("<span data-d=\"{}\">{}{}</span>", d, d, d == kColours ? "+" : "");
  page.heading("Texts");
  key += "; by ";
  for (const DraftSource source : {DraftSource::Lookup, DraftSource::Store, DraftSource::Mtp})
    key += fmt::format("<span data-d=\"1\" data-s=\"{0}\">{0}</span> ", to_string(source));
  page.raw(key + "; without colour: the trunk's own.</p>\n");
  for (const Json& result : results) {
    page.heading("Prompt " + text_of(at(result, "id")));
    if (const Json& prompt = at(result, "prompt_text"); prompt.is_string())
      page.raw(
          fmt::format("<details><summary>The prompt</summary><div class=\"text\">{}</div>"
                      "</details>\n",
                      escaped(prompt.get<std::string>())));
    if (at(result, "identical") == false) page.paragraph("The arms differ.", Mood::Bad);
    for (const Json& arm : at(result, "arms")) {
      const Json& pieces = at(arm, "pieces");
      page.paragraph(fmt::format("{}, {}: {} tokens, {} tokens/round, {} tokens/s", arm_name(arm),
                                 text_of(at(arm, "drafter")), at(arm, "token_ids").size(),
                                 shown(number(at(arm, "tokens_per_round")), 2),
                                 shown(number(at(arm, "tokens_per_second")), 1)));
      page.raw(
          fmt::format("<div class=\"text\">{}</div>\n",
                      pieces.is_array() ? coloured(pieces) : escaped(text_of(at(arm, "text")))));
    }
  }
}

}  // namespace

std::string generate_page(const Json& report) {
  const Json& results = at(report, "results");
  const auto totals = totals_of(results);
  Page page(title_of(report));
  page.subtitle(subtitle_of(report));
  for (const Total& total : totals) {
    page.tile(total.name + ", tokens/s", shown(total.tokens_per_second(), 1));
    page.tile(total.name + ", tokens/round", shown(total.tokens_per_round(), 2));
  }
  if (totals.size() > 1) {
    const bool same = at(report, "identical") == true;
    page.tile("same text in all arms", same ? "yes" : "no", same ? Mood::Good : Mood::Bad);
  }
  add_acceptance(totals, page);
  add_gaps(totals, page);
  add_texts(results, page);
  page.details("Conditions", head_table(report));
  return page.html();
}

}  // namespace paceline::apps

// The pages of drift and of trace-compare: do two runs say the same?
#include <fmt/format.h>

#include <algorithm>

#include "apps/page_parts.h"
#include "apps/pages.h"

namespace paceline::apps {
namespace {

std::string flip_text(const Json& flip) {
  if (!flip.is_object()) return "-";
  return fmt::format("at {}: {} and {}", text_of(at(flip, "position")), text_of(at(flip, "a")),
                     text_of(at(flip, "b")));
}

void add_prompts(const Json& report, Page& page) {
  Table table{{"prompt", "outcome", "first flip", "tokens", "runs into a cycle"}, {}};
  const Json& prompts = at(report, "prompts");
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Json& prompt = at(prompts, i);
    const Json& id = at(prompt, "id");
    const Json& cyclic = at(prompt, "cyclic");
    table.rows.push_back({id.is_null() ? fmt::format("{}", i + 1) : text_of(id),
                          text_of(at(prompt, "outcome")), flip_text(at(prompt, "first_flip")),
                          text_of(at(prompt, "tokens")),
                          at(cyclic, 0) == true || at(cyclic, 1) == true ? "yes" : "no"});
  }
  page.heading("Prompts");
  page.table(table);
}

// Drafts of both arms that stood, by depth.
void add_accepted(const Json& report, Page& page) {
  Plot plot{"depth of the draft", "drafts that stood", {}, {}, {}};
  Table table{{"depth"}, {}};
  const Json& accepted = at(report, "accepted_by_depth");
  const size_t n = std::max(at(accepted, 0).size(), at(accepted, 1).size());
  if (n == 0) return;
  for (size_t d = 1; d <= n; ++d) {
    plot.x.push_back(static_cast<double>(d));
    table.rows.push_back({fmt::format("{}", d)});
  }
  for (size_t arm = 0; arm < 2; ++arm) {
    const std::string name = "depth " + text_of(at(at(report, "depths"), arm));
    auto y = numbers(at(accepted, arm));
    if (y.empty()) continue;
    y.resize(n);
    table.columns.push_back(name);
    for (size_t d = 0; d < n; ++d) table.rows[d].push_back(counted(y[d]));
    plot.series.push_back({name, std::move(y)});
  }
  if (!plot.series.empty())
    page.figure("Acceptance by depth", "Drafts that stood, over all prompts.", plot, table);
}

// Counts in bins of one width, the last one open.
void add_histogram(const Json& histogram, Page& page) {
  const auto counts = numbers(at(histogram, "counts"));
  const Value width = number(at(histogram, "width"));
  if (counts.size() < 2 || !width) return;
  Plot plot{"gap between the two largest logits", "positions", {}, {}, {}};
  Table table{{"gap from", "positions"}, {}};
  for (size_t i = 0; i < counts.size(); ++i) {
    const double from = static_cast<double>(i) * *width;
    plot.x.push_back(from + *width / 2);
    table.rows.push_back({fmt::format("{:.1f}{}", from, i + 1 == counts.size() ? " and more" : ""),
                          counted(counts[i])});
  }
  plot.series.push_back({"positions", counts, Series::Form::Bars});
  page.figure("Gap histogram",
              "How far the second likeliest token was behind the likeliest; the last bar holds "
              "all that is beyond.",
              plot, table);
}

void add_ranks(const Json& ranks, Page& page) {
  Plot plot{"rank in the candidate (0: its first choice)", "positions", {}, {}, {}};
  Table table{{"rank", "positions"}, {}};
  const auto counts = numbers(ranks);
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool last = i + 1 == counts.size();
    if (i > 0 && !last && counts[i].value_or(0) == 0) continue;
    table.rows.push_back({last ? "not kept" : fmt::format("{}", i), counted(counts[i])});
  }
  if (counts.size() < 2) return;
  for (size_t i = 0; i < counts.size(); ++i) {
    plot.x.push_back(static_cast<double>(i));
    plot.x_names.push_back(i + 1 == counts.size() ? "none" : fmt::format("{}", i));
  }
  plot.series.push_back({"positions", counts, Series::Form::Bars});
  page.figure("Rank of the reference's choice",
              "Where the reference's likeliest token stands among the candidate's.", plot, table);
}

}  // namespace

std::string drift_page(const Json& report) {
  Page page(title_of(report));
  page.subtitle(subtitle_of(report));
  const bool same = at(report, "outcome") == "same";
  page.tile("outcome", text_of(at(report, "outcome")), same ? Mood::Good : Mood::Bad);
  page.tile("positions compared", counted(number(at(report, "positions"))));
  page.tile("flip rate", percent(number(at(report, "flip_rate")), 3));
  page.tile("teacher-forced rate", percent(number(at(report, "teacher_forced_rate")), 4));
  page.tile("rows with a moved logit", counted(number(at(report, "teacher_forced_moved"))));
  const Json& rates = at(report, "tokens_per_second");
  for (size_t i = 0; i < 2 && rates.is_array(); ++i)
    page.tile(fmt::format("depth {}, tokens/s", text_of(at(at(report, "depths"), i))),
              shown(number(at(rates, i)), 1));
  page.paragraph(
      "Behind the first flip two texts go their own ways, so the flip rate says how early they "
      "part. How often the two would choose differently is the teacher-forced rate: one text, "
      "read in blocks of both widths.");
  add_by_gap(at(report, "by_gap"), /*with_positions=*/true, page);
  add_accepted(report, page);
  add_prompts(report, page);
  page.details("Conditions", head_table(report));
  return page.html();
}

std::string trace_compare_page(const Json& report) {
  Page page("trace-compare");
  page.subtitle(fmt::format("{} against {}", base_name(text_of(at(report, "candidate"))),
                            base_name(text_of(at(report, "reference")))));
  const Json& verdict = at(report, "verdict");
  page.tile("verdict", text_of(verdict), verdict == "same" ? Mood::Good : Mood::Bad);
  page.tile("positions", counted(number(at(report, "positions"))));
  page.tile("choose differently", percent(number(at(report, "disagreement")), 4));
  page.tile("of decided ones", percent(number(at(report, "disagreement_decided")), 4));
  page.tile("rows with a moved logit", counted(number(at(report, "moved"))));
  const Value kl = number(at(report, "kl"));
  page.tile("KL, nats a row", kl ? fmt::format("{:.2g}", *kl) : "-");
  add_by_gap(at(report, "by_gap"), /*with_positions=*/false, page);
  add_histogram(at(report, "gap_histogram"), page);
  add_ranks(at(report, "rank_of_reference"), page);
  Table table{{"measure", "value"}, {}};
  const Json& quantiles = at(report, "delta_quantiles");
  for (const char* name : {"p50", "p90", "p99", "max"})
    table.rows.push_back(
        {fmt::format("|difference| of the logit of the reference's choice, {}", name),
         text_of(at(quantiles, name))});
  table.rows.push_back({"perplexity of the reference", text_of(at(at(report, "perplexity"), 0))});
  table.rows.push_back({"perplexity of the candidate", text_of(at(at(report, "perplexity"), 1))});
  table.rows.push_back({"probability of what both kept", text_of(at(report, "kl_share"))});
  page.heading("Logits");
  page.table(table);
  Table settings{{"setting", "reference", "candidate"}, {}};
  const Json& a = at(at(report, "configurations"), 0);
  const Json& b = at(at(report, "configurations"), 1);
  for (const Json* side : {&a, &b})
    for (const auto& [name, value] : side->items()) {
      const bool there = std::any_of(settings.rows.begin(), settings.rows.end(),
                                     [&, &key = name](const auto& row) { return row[0] == key; });
      if (!there) settings.rows.push_back({name, text_of(at(a, name)), text_of(at(b, name))});
    }
  page.details("Configurations", settings);
  page.details("Conditions", head_table(report));
  return page.html();
}

}  // namespace paceline::apps

#include "apps/bench_price.h"

#include "apps/say.h"

namespace paceline::apps {
namespace {

double percent(double ratio) { return (ratio - 1) * 100; }

}  // namespace

Json price_json(const measure::Price& price) {
  Json widths = Json::object();
  for (const auto& width : price.widths) {
    widths[std::to_string(width.rows)] =
        Json{{"ratio", width.ratio},
             {"interval", Json::array({width.interval.low, width.interval.high})},
             {"exact_ms", width.exact_seconds * 1e3},
             {"wide_ms", width.wide_seconds * 1e3}};
  }
  return Json{{"position", price.position}, {"pairs", price.pairs}, {"widths", std::move(widths)}};
}

void print_price(const measure::Price& price) {
  say("\nprice of exactness, {} pairs of passes at position {}\n"
      "rows   exact ms    wide ms     price  95 % interval\n",
      price.pairs, price.position);
  for (const auto& width : price.widths) {
    say("{:>4}{:>11.3f}{:>11.3f}{:>+8.1f} %  [{:+.1f}, {:+.1f}]\n", width.rows,
        width.exact_seconds * 1e3, width.wide_seconds * 1e3, percent(width.ratio),
        percent(width.interval.low), percent(width.interval.high));
  }
}

}  // namespace paceline::apps

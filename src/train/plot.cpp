#include "train/plot.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "fmt/format.h"
#include "io/output_file.h"

namespace paceline::train {
namespace {

constexpr int kWidth = 720, kPanel = 240, kLeft = 56, kRight = 120, kTop = 28, kGap = 44;
constexpr const char* kColors[] = {"#1b6ca8", "#d1495b", "#2e8b57", "#b8860b",
                                   "#6a4c93", "#008b8b", "#8b4513", "#555555"};

struct Line {
  std::string name;
  const char* color;
  std::function<double(const HistoryEntry&)> value;  // NaN: no point
};

std::string panel(std::span<const HistoryEntry> history, const std::string& title,
                  std::span<const Line> lines, int top) {
  double highest = 0;
  for (const HistoryEntry& entry : history)
    for (const Line& line : lines)
      if (const double y = line.value(entry); std::isfinite(y)) highest = std::max(highest, y);
  if (highest == 0) highest = 1;
  const double last = std::max<double>(1, static_cast<double>(history.back().step));
  const double width = kWidth - kLeft - kRight;
  const auto x_of = [&](int64_t step) { return kLeft + width * static_cast<double>(step) / last; };
  const auto y_of = [&](double y) { return top + kPanel * (1 - y / (1.05 * highest)); };

  std::string svg =
      fmt::format("<text x='{}' y='{}' font-weight='bold'>{}</text>\n", kLeft, top - 10, title);
  for (int i = 0; i <= 4; ++i) {
    const double y = highest * i / 4;
    svg += fmt::format(
        "<line x1='{}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' stroke='#ddd'/>"
        "<text x='{}' y='{:.1f}' text-anchor='end'>{:.3g}</text>\n",
        kLeft, kLeft + width, y_of(y), y_of(y), kLeft - 6, y_of(y) + 4, y);
    const auto step = static_cast<int64_t>(last * i / 4);
    svg += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{}</text>\n", x_of(step),
                       top + kPanel + 16, step);
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string points;
    for (const HistoryEntry& entry : history)
      if (const double y = lines[i].value(entry); std::isfinite(y))
        points += fmt::format("{:.1f},{:.1f} ", x_of(entry.step), y_of(y));
    svg += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2'/>\n", points,
                       lines[i].color);
    svg += fmt::format("<text x='{}' y='{}' fill='{}'>{}</text>\n", kWidth - kRight + 10,
                       top + 14 + 18 * static_cast<int>(i), lines[i].color, lines[i].name);
  }
  return svg;
}

}  // namespace

std::string plot(std::span<const HistoryEntry> history) {
  const int height = 2 * (kPanel + kGap) + kTop;
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n",
      kWidth, height);
  if (history.empty()) return svg + "</svg>\n";
  const Line losses[] = {
      {"loss", kColors[0], [](const HistoryEntry& e) { return e.step > 0 ? e.loss : NAN; }},
      {"held out", kColors[1], [](const HistoryEntry& e) { return e.held_out_loss; }}};
  std::vector<Line> accepted;
  for (size_t d = 0; d < history.front().joint.size(); ++d)
    accepted.push_back({fmt::format("depth {}", d + 1), kColors[d % 8],
                        [d](const HistoryEntry& e) { return e.joint[d]; }});
  accepted.push_back({"E", "black", [](const HistoryEntry& e) { return e.expected; }});
  svg += panel(history, "Loss over steps", losses, kTop);
  svg += panel(history, "Accepted on held-out answers, served", accepted, kTop + kPanel + kGap);
  return svg + "</svg>\n";
}

Result<void> write_plot(const std::filesystem::path& file, std::span<const HistoryEntry> history) {
  auto out = OutputFile::create(file);
  if (!out) return out.error();
  const std::string svg = plot(history);
  if (auto written = out->write(std::as_bytes(std::span(svg))); !written) return written;
  return out->commit();
}

}  // namespace paceline::train

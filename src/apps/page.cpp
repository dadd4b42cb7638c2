#include "apps/page.h"

#include <fmt/format.h>

#include <cmath>

#include "apps/embedded.h"
#include "text/utf8.h"

namespace paceline::apps {
namespace {

const char* name_of(Series::Form form) {
  switch (form) {
    case Series::Form::Line:
      return "line";
    case Series::Form::Dashed:
      return "dashed";
    case Series::Form::Points:
      return "points";
    case Series::Form::Bars:
      break;
  }
  return "bars";
}

// JSON has neither infinity nor NaN.
Json to_json(Value value) { return value && std::isfinite(*value) ? Json(*value) : Json(nullptr); }

Json to_json(const Plot& plot) {
  Json series = Json::array();
  for (const Series& one : plot.series) {
    Json y = Json::array();
    for (const Value& value : one.y) y.push_back(to_json(value));
    Json interval = Json::array();
    for (const auto& [low, high] : one.interval)
      interval.push_back(Json::array({to_json(low), to_json(high)}));
    series.push_back(Json{{"name", one.name},
                          {"form", name_of(one.form)},
                          {"y", std::move(y)},
                          {"interval", std::move(interval)}});
  }
  return Json{{"xLabel", plot.x_label},
              {"yLabel", plot.y_label},
              {"x", plot.x},
              {"xNames", plot.x_names},
              {"series", std::move(series)}};
}

std::string table_html(const Table& table) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& column : table.columns)
    html += fmt::format("<th scope=\"col\">{}</th>", escaped(column));
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", escaped(row[i]))
                     : fmt::format("<td>{}</td>", escaped(row[i]));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

const char* class_of(Mood mood) {
  switch (mood) {
    case Mood::Good:
      return " class=\"good\"";
    case Mood::Bad:
      return " class=\"bad\"";
    case Mood::Plain:
      break;
  }
  return "";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char c : replace_invalid_utf8(text)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        const bool has_form = byte >= 0x20 || c == '\n' || c == '\t';
        html += has_form && byte != 0x7f ? std::string(1, c) : "\xEF\xBF\xBD";
      }
    }
  }
  return html;
}

std::string script_json(const Json& json) {
  // "</script>" and "<!--" end or change a script wherever they stand: no "<" is left in it.
  std::string text;
  for (const char c : json_text(json, -1)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

void Page::close_tiles() {
  if (in_tiles_) body_ += "</dl>\n";
  in_tiles_ = false;
}

void Page::subtitle(std::string_view text) {
  close_tiles();
  body_ += fmt::format("<p class=\"subtitle\">{}</p>\n", escaped(text));
}

void Page::tile(std::string_view name, std::string_view value, Mood mood) {
  if (!in_tiles_) body_ += "<dl class=\"tiles\">\n";
  in_tiles_ = true;
  body_ += fmt::format("<div{}><dt>{}</dt><dd>{}</dd></div>\n", class_of(mood), escaped(name),
                       escaped(value));
}

void Page::heading(std::string_view text) {
  close_tiles();
  body_ += fmt::format("<h2>{}</h2>\n", escaped(text));
}

void Page::paragraph(std::string_view text, Mood mood) {
  close_tiles();
  body_ += fmt::format("<p{}>{}</p>\n", class_of(mood), escaped(text));
}

void Page::table(const Table& table) {
  close_tiles();
  body_ += table_html(table);
}

void Page::figure(std::string_view title, std::string_view note, const Plot& plot,
                  const Table& table) {
  close_tiles();
  body_ += fmt::format(
      "<figure><figcaption><h2>{}</h2><p>{}</p></figcaption>\n"
      "<div class=\"plot\" data-plot=\"{}\" role=\"img\" aria-label=\"{}\"></div>\n{}</figure>\n",
      escaped(title), escaped(note), plots_.size(), escaped(title), table_html(table));
  plots_.push_back(to_json(plot));
}

void Page::details(std::string_view title, const Table& table) {
  close_tiles();
  body_ += fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(title),
                       table_html(table));
}

void Page::raw(std::string_view html) {
  close_tiles();
  body_ += html;
}

std::string Page::html() const {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      // Nothing is loaded from anywhere, whatever a text in here may say.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  page += fmt::format("<title>{}</title>\n", escaped(title_));
  page += "<style>\n";
  page += uplot_style();
  page += "\n";
  page += page_style();
  page += fmt::format("</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n", escaped(title_));
  page += body_;
  if (in_tiles_) page += "</dl>\n";
  page += "</main>\n";
  if (!plots_.empty()) {
    page += "<script type=\"application/json\" id=\"plots\">";
    page += script_json(plots_);
    page += "</script>\n";
    if (!uplot_script().empty()) {
      page += "<script>\n/*! uPlot, which draws the plots:\n\n";
      page += uplot_licence();
      page += "*/\n";
      page += uplot_script();
      page += "\n</script>\n";
    }
    page += "<script>\n";
    page += page_script();
    page += "</script>\n";
  }
  return page + "</body>\n</html>\n";
}

}  // namespace paceline::apps

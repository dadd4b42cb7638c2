// A report as one HTML page that needs nothing else: text, tables, and plots that uPlot draws in
// the reader's browser. Whatever comes from outside (prompts, names, texts) is escaped here.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/report_fields.h"

namespace paceline::apps {

struct Series {
  enum class Form { Line, Dashed, Points, Bars };

  std::string name;
  std::vector<Value> y;  // one for each x; none: a gap in the line
  Form form = Form::Line;
  std::vector<std::pair<Value, Value>> interval = {};  // low and high, drawn as whiskers; or none
};

struct Plot {
  std::string x_label;
  std::string y_label;
  std::vector<double> x;             // ascending
  std::vector<std::string> x_names;  // instead of numbers, one for each x; or none
  std::vector<Series> series;
};

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // the first cell of each names it
};

// How a fact is meant.
enum class Mood { Plain, Good, Bad };

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  // A line below the title: what was run, where.
  void subtitle(std::string_view text);
  // A number to see first, in a row with its neighbours.
  void tile(std::string_view name, std::string_view value, Mood mood = Mood::Plain);
  void heading(std::string_view text);
  void paragraph(std::string_view text, Mood mood = Mood::Plain);
  void table(const Table& table);
  // A plot with its numbers beside it; note: how to read it.
  void figure(std::string_view title, std::string_view note, const Plot& plot, const Table& table);
  // Closed until the reader opens it.
  void details(std::string_view title, const Table& table);
  // HTML that the caller made of escaped parts.
  void raw(std::string_view html);

  // The whole document.
  std::string html() const;

 private:
  void close_tiles();

  std::string title_;
  std::string body_;
  Json plots_ = Json::array();
  bool in_tiles_ = false;
};

// For text and for attributes in double quotes. Control characters that HTML has no form for, and
// bytes that are no UTF-8, become U+FFFD.
std::string escaped(std::string_view text);
// JSON that may stand inside <script>.
std::string script_json(const Json& json);

}  // namespace paceline::apps

// What the terminal shows: colours for drafted tokens, and a line of progress.
#pragma once

#include <string>
#include <string_view>

namespace paceline::apps {

enum class ColorChoice { Auto, Always, Never };

bool stdout_is_terminal();
bool stderr_is_terminal();
// Whether standard output gets colours. Auto: a terminal that knows them, and NO_COLOR not set.
bool use_color(ColorChoice choice);

// The text in the colour of a draft that stood at this depth; depth 0 stays as it is.
std::string colored(std::string_view text, int depth);
std::string dimmed(std::string_view text);

// A line on standard error that is written over and over, and only on a terminal.
class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  void show(std::string_view text, double share);  // "loading  43 %"
  void clear();

 private:
  std::string shown_;
};

}  // namespace paceline::apps

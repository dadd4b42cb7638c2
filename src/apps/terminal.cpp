#include "apps/terminal.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "apps/say.h"

namespace paceline::apps {

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

bool use_color(ColorChoice choice) {
  if (choice != ColorChoice::Auto) return choice == ColorChoice::Always;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != 0) return false;  // no-color.org
  const char* term = std::getenv("TERM");
  return stdout_is_terminal() && term != nullptr && std::string_view(term) != "dumb";
}

std::string colored(std::string_view text, int depth) {
  if (depth <= 0) return std::string(text);
  // From green over blue to violet, the deeper the draft; colours of the 256-colour palette.
  constexpr std::array kPalette = {40, 43, 45, 39, 33, 63, 99, 135};
  const int color = kPalette[std::min<size_t>(depth - 1, kPalette.size() - 1)];
  return fmt::format("\x1b[38;5;{}m{}\x1b[0m", color, text);
}

std::string dimmed(std::string_view text) { return fmt::format("\x1b[2m{}\x1b[0m", text); }

void ProgressLine::show(std::string_view text) {
  if (!stderr_is_terminal() || text == shown_) return;
  shown_ = text;
  say(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
}

void ProgressLine::show(std::string_view text, double share) {
  show(fmt::format("{} {:3.0f} %", text, std::clamp(share, 0.0, 1.0) * 100));
}

void ProgressLine::clear() {
  if (shown_.empty()) return;
  shown_.clear();
  say(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace paceline::apps
